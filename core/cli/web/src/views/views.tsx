// The viewers of contents. This file and what it needs is the part of the page that is loaded with the first resource.
import { Component, type ComponentChildren, type JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Contents } from '../api';
import { plainType, sizeText } from '../catalog';
import type { ContentsViewProps, ViewName } from '../resource';
import type { Chosen } from '../store';
import { Changes } from './changes';
import { DiffView } from './diff';
import { DirectoryView, isDirectory } from './directory';
import { HexView } from './hex';
import { JsonView } from './json';
import { type Kind, kindOf, textOf } from './kind';
import { MarkdownView } from './markdown';
import { AudioView, ImageView, PdfView, VideoView } from './media';
import { SourceView } from './source';
import { CsvView } from './table';
import { YamlView } from './yaml';

/** Most contents of one read that are shown. */
const MOST_PARTS = 50;

export function ContentsView({ chosen, entry, contents, previous, view }: ContentsViewProps): JSX.Element {
  if (view === 'changes') return <Changes before={previous ?? []} after={contents} />;
  if (isDirectory(chosen.uri, contents) && view === 'preview')
    return <DirectoryView chosen={chosen} contents={contents} />;
  if (contents.length === 0) return <p class="empty">The resource has no contents.</p>;
  return (
    <>
      {contents.slice(0, MOST_PARTS).map((one, index) => {
        const before = previous?.[index] ?? null;
        const type = one.mimeType ?? entry?.mimeType ?? '';
        return (
          <section key={index} class="part">
            {contents.length > 1 && (
              <h3 class="part-head">
                {one.uri} <small>{type}</small>
              </h3>
            )}
            <Guard key={`${view} ${one.text?.length ?? one.blob?.length}`} contents={one} type={type}>
              <Part chosen={chosen} contents={one} previous={before} type={type} view={view} />
            </Guard>
          </section>
        );
      })}
      {contents.length > MOST_PARTS && <p class="empty">{contents.length - MOST_PARTS} more are left out.</p>}
    </>
  );
}

export interface PartProps {
  chosen: Chosen;
  contents: Contents;
  previous: Contents | null;
  type: string;
}

function Part({ view, ...part }: PartProps & { view: ViewName }): JSX.Element {
  const { contents, type, previous, chosen } = part;
  const kind = useMemo(() => kindOf(contents, type), [contents, type]);
  const text = useMemo(() => textOf(contents), [contents]);
  if (contents.error) return <p class="banner is-bad">{contents.error}</p>;
  if (contents.blob === '' && contents.isCut) {
    return (
      <p class="empty">
        {sizeText(contents.size)} of {type || 'bytes'}: too big to show. Download them.
      </p>
    );
  }
  if (view === 'source') {
    if (text === null) return <HexView contents={contents} />;
    return <SourceView text={text} uri={contents.uri} type={type} previous={previous && textOf(previous)} />;
  }
  return <KindView kind={kind} text={text ?? ''} part={part} chosen={chosen} previous={previous && textOf(previous)} />;
}

interface KindProps {
  kind: Kind;
  text: string;
  part: PartProps;
  chosen: Chosen;
  previous: string | null;
}

function KindView({ kind, text, part, chosen, previous }: KindProps): JSX.Element {
  const { contents, type } = part;
  switch (kind) {
    case 'markdown':
      return <MarkdownView text={text} uri={contents.uri} server={chosen.server} previous={previous} />;
    case 'json':
      return <JsonView text={text} chosen={chosen} contents={contents} previous={previous} />;
    case 'yaml':
      return <YamlView text={text} chosen={chosen} contents={contents} previous={previous} />;
    case 'csv':
      return (
        <CsvView
          text={text}
          chosen={chosen}
          isTabs={plainType(type).includes('tab') || contents.uri.endsWith('.tsv')}
        />
      );
    case 'diff':
      return <DiffView text={text} />;
    case 'image':
      return <ImageView contents={contents} type={plainType(type)} />;
    case 'audio':
      return <AudioView contents={contents} type={plainType(type)} />;
    case 'video':
      return <VideoView contents={contents} type={plainType(type)} />;
    case 'pdf':
      return <PdfView contents={contents} />;
    case 'hex':
      return <HexView contents={contents} />;
    case 'source':
      return <SourceView text={text} uri={contents.uri} type={type} previous={previous} />;
  }
}

/** Shows the text itself where a viewer fails. */
class Guard extends Component<{ contents: Contents; type: string; children?: ComponentChildren }, { failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override render(): JSX.Element {
    const { contents, type, children } = this.props;
    if (!this.state.failed) return <>{children}</>;
    return <SourceView text={textOf(contents) ?? ''} uri="" type={type} previous={null} />;
  }
}
