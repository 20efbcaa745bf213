// Results of a search, with their hits marked.
import type { ComponentChildren, JSX } from 'preact';
import { decoded } from '../catalog';
import { type Chosen, store } from '../store';
import { visible } from './text';

interface Hit {
  uri: string;
  title?: string;
  section?: string;
  snippet?: string;
  text?: string;
  score?: number;
}

interface Hits {
  query?: string;
  hits: Hit[];
  more?: boolean;
}

const MOST = 200;

export function isHits(value: unknown): value is Hits {
  const hits = (value as Hits | null)?.hits;
  return Array.isArray(hits) && hits.every((hit) => typeof hit?.uri === 'string');
}

export function HitsView({ hits, chosen }: { hits: Hits; chosen: Chosen }): JSX.Element {
  const words = (hits.query ?? '').split(/[\s"]+/).filter(Boolean);
  if (hits.hits.length === 0) return <p class="empty">Nothing is found.</p>;
  return (
    <ol class="hits">
      {hits.hits.slice(0, MOST).map((hit) => (
        <li key={hit.uri}>
          <button type="button" class="link" onClick={() => store.choose({ server: chosen.server, uri: hit.uri })}>
            {visible(String(hit.title ?? hit.uri))}
          </button>
          {hit.section && hit.section !== hit.title && <span class="dim"> › {visible(String(hit.section))}</span>}
          {typeof hit.score === 'number' && <small class="score">{hit.score.toFixed(2)}</small>}
          <p>{marked(String(hit.snippet ?? hit.text ?? '').slice(0, 1_000), hit.snippet === undefined ? words : [])}</p>
          <span class="row-uri">{visible(decoded(hit.uri))}</span>
        </li>
      ))}
    </ol>
  );
}

/** Text whose matches stand between `**`, or are these words. */
function marked(text: string, words: string[]): ComponentChildren {
  if (words.length > 0) {
    const pattern = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
    return text
      .split(new RegExp(`(${pattern})`, 'giu'))
      .map((part, at) => (at % 2 ? <mark key={at}>{part}</mark> : visible(part)));
  }
  return text.split('**').map((part, at) => (at % 2 ? <mark key={at}>{visible(part)}</mark> : visible(part)));
}
