// One resource: what is known of it, its contents, and its changes.
import type { ComponentType, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type ApiError, ask, type Contents, downloadUrl, errorOf, type ReadAnswer } from './api';
import { type Entry, sizeText } from './catalog';
import { CopyButton } from './copy';
import { Icon } from './icons';
import { type Chosen, store, useStore, type WatchedChange } from './store';

export interface ContentsViewProps {
  chosen: Chosen;
  entry: Entry | undefined;
  contents: Contents[];
  /** What was shown before the last change. */
  previous: Contents[] | null;
  view: ViewName;
}

export type ViewName = 'preview' | 'source' | 'changes';

type Views = { ContentsView: ComponentType<ContentsViewProps> };
let views: Views | null = null;
/** The viewers are a part of the page that is loaded with the first resource. */
const loading = (): Promise<Views> => import('./views/views').then((loaded) => (views = loaded));

/**
 * Changes that follow the first within this time are compared with what stood before it: many programs save a file by
 * emptying it and then writing it, and a reader may see it empty in between.
 */
const SAVE_MS = 2000;

export function ResourcePane({ chosen }: { chosen: Chosen }): JSX.Element {
  const { servers } = useStore();
  const server = servers.find((one) => one.name === chosen.server);
  const [answer, setAnswer] = useState<ReadAnswer | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [previous, setPrevious] = useState<Contents[] | null>(null);
  const [isGone, setIsGone] = useState(false);
  const [changedAt, setChangedAt] = useState<Date | null>(null);
  const [view, setView] = useState<ViewName | 'message'>('preview');
  const [, loaded] = useState(views);
  const current = useRef<Contents[] | null>(null);
  const firstAt = useRef(0);
  const heading = useRef<HTMLHeadingElement>(null);
  const entry = store.entry(chosen);
  const isWatched = server?.about?.hasSubscriptions === true;

  const load = async (): Promise<void> => {
    try {
      const [read] = await Promise.all([store.read(chosen), views ?? loading()]);
      loaded(views);
      current.current = read.contents;
      setAnswer(read);
      setError(null);
      setIsGone(false);
    } catch (thrown) {
      setError(errorOf(thrown));
    }
  };
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
    void load();
  }, []);
  useEffect(() => {
    if (!isWatched || answer === null) return;
    return store.watch(chosen, (change: WatchedChange | ApiError) => {
      if (!('uri' in change)) return;
      // A resource below the watched one: its list may be shown.
      if (change.changed !== chosen.uri) return void load();
      if (change.contents === null) return setIsGone(true);
      setIsGone(false);
      if (JSON.stringify(change.contents) === JSON.stringify(current.current)) return;
      const now = Date.now();
      if (now - firstAt.current > SAVE_MS) {
        setPrevious(current.current);
        firstAt.current = now;
      }
      current.current = change.contents;
      setAnswer((before) => before && { ...before, contents: change.contents ?? [] });
      setChangedAt(new Date(now));
    });
  }, [isWatched, answer === null]);

  const contents = answer?.contents ?? [];
  const size = contents.reduce((sum, one) => sum + one.size, 0);
  const isCut = contents.some((one) => one.isCut);
  const texts = contents.map((one) => one.text).filter((text) => text !== undefined);
  const type = contents.length === 1 ? (contents[0]?.mimeType ?? entry?.mimeType) : entry?.mimeType;
  const ContentsView = views?.ContentsView;
  const isInBasket = store.isInBasket(chosen);
  const tab = (name: typeof view, label: string): JSX.Element => (
    <button type="button" aria-pressed={view === name} onClick={() => setView(name)}>
      {label}
    </button>
  );
  return (
    <article class="resource">
      <header class="resource-head">
        <h2 tabIndex={-1} ref={heading}>
          {entry?.title || entry?.name || decodedEnd(chosen.uri)}
        </h2>
        <p class="uri">{chosen.uri}</p>
        {entry?.description && <p class="description">{entry.description}</p>}
        <Facts
          facts={[
            ['Server', servers.length > 1 ? chosen.server : ''],
            ['Type', type ?? ''],
            ['Size', answer ? sizeText(size) : entry?.size != null ? sizeText(entry.size) : ''],
            ['Audience', entry?.audience.join(', ') ?? ''],
            ['Priority', entry?.priority != null ? String(entry.priority) : ''],
            ['Modified', entry?.lastModified ?? ''],
            ['ttlMs', answer?.ttlMs ? String(answer.ttlMs) : ''],
          ]}
        />
        <div class="buttons">
          <CopyButton label="Copy URI" text={() => chosen.uri} />
          <CopyButton label="Copy contents" text={() => texts.join('\n')} disabled={texts.length === 0} />
          <a class="button" href={downloadUrl(chosen.server, chosen.uri)} download>
            <Icon name="download" /> Download
          </a>
          <button type="button" aria-pressed={isInBasket} onClick={() => void store.toggleBasket(chosen)}>
            <Icon name={isInBasket ? 'check' : 'plus'} /> {isInBasket ? 'In the context' : 'Add to context'}
          </button>
        </div>
        <div class="views" role="group" aria-label="View">
          {tab('preview', 'Contents')}
          {tab('source', 'Source')}
          {tab('message', 'Message')}
          {previous && tab('changes', 'Changes')}
          <span class="live" role="status">
            {isGone ? (
              <span class="bad">The resource is gone; this is what it was.</span>
            ) : changedAt ? (
              <>
                <span class="pulse" key={changedAt.getTime()} /> Changed at {changedAt.toLocaleTimeString('en-GB')}
              </>
            ) : isWatched && answer ? (
              <>
                <span class="pulse" /> Live
              </>
            ) : (
              answer && (
                <button type="button" class="quiet" onClick={() => void load()}>
                  <Icon name="refresh" /> Read again
                </button>
              )
            )}
          </span>
        </div>
      </header>
      {isCut && (
        <p class="banner">
          The contents are too big to show whole ({sizeText(size)}): the rest is left out. Download them to see all.
        </p>
      )}
      {error ? (
        <div class="banner is-bad" role="alert">
          {error.message}
          <button type="button" onClick={() => void load()}>
            <Icon name="refresh" /> Try again
          </button>
        </div>
      ) : answer === null || !ContentsView ? (
        <p class="empty">Reading …</p>
      ) : view === 'message' ? (
        <Message chosen={chosen} entry={entry} contents={contents} />
      ) : (
        <div class="contents">
          <ContentsView chosen={chosen} entry={entry} contents={contents} previous={previous} view={view} />
        </div>
      )}
    </article>
  );
}

function decodedEnd(uri: string): string {
  const end = uri.replace(/\/+$/, '').split('/').at(-1) || uri;
  try {
    return decodeURIComponent(end);
  } catch {
    return end;
  }
}

function Facts({ facts }: { facts: [string, string][] }): JSX.Element {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** The entry of the list and the result of the read, as the server sent them. */
function Message({
  chosen,
  entry,
  contents,
}: {
  chosen: Chosen;
  entry: Entry | undefined;
  contents: Contents[];
}): JSX.Element {
  const [result, setResult] = useState<string | null>(null);
  const [note, setNote] = useState('');
  useEffect(() => {
    ask<{ result: string; isCut: boolean }>('raw', chosen).then(
      (raw) => {
        setResult(pretty(raw.result));
        if (raw.isCut) setNote('The message is cut, because it is too long.');
      },
      () => {
        setResult(JSON.stringify({ contents }, null, 2));
        setNote('The allow-list may leave out a part, so this is what the client keeps of the message.');
      },
    );
  }, []);
  return (
    <div class="contents message">
      {entry && (
        <>
          <h3>In the list</h3>
          <pre tabIndex={0}>{JSON.stringify(entry.raw, null, 2)}</pre>
        </>
      )}
      <h3>
        Result of <code>resources/read</code>
      </h3>
      {note && <p class="small">{note}</p>}
      <pre tabIndex={0}>{result ?? 'Reading …'}</pre>
    </div>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
