// YAML as a tree.
import { loadAll } from 'js-yaml';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { type JsonProps, StructuredView } from './json';
import { SourceView } from './source';

/** Longer text is shown as source. */
const MOST = 1_000_000;

export function YamlView({ text, chosen, contents, previous }: JsonProps): JSX.Element {
  const value = useMemo(() => parsed(text), [text]);
  const before = useMemo(() => (previous === null ? undefined : parsed(previous)), [previous]);
  if (value === undefined || typeof value !== 'object') {
    return <SourceView text={text} uri={contents.uri} type="yaml" previous={previous} />;
  }
  return <StructuredView value={value} before={before} chosen={chosen} />;
}

function parsed(text: string): unknown {
  if (text.length > MOST) return undefined;
  try {
    const documents = loadAll(text) as unknown[];
    return documents.length === 1 ? documents[0] : documents;
  } catch {
    return undefined;
  }
}
