// Markdown. HTML in it is shown as text; what markdown-it makes is sanitized again; pictures come from the server alone.
import DOMPurify from 'dompurify';
import MarkdownIt from 'markdown-it';
import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { ask, bytesOf, type ReadAnswer } from '../api';
import { plainType } from '../catalog';
import { changedLines } from './changes';
import { coloured, languageOf } from './highlight';
import { IMAGES } from './kind';
import { SourceView } from './source';
import { visible } from './text';

/** Longer text is shown as source. */
const MOST = 1_000_000;
/** Most pictures of the server in one text. */
const MOST_PICTURES = 20;
const SCRIPT = /^\s*(?:javascript|vbscript|data):/i;
const PICTURE = /^data:image\/(?:gif|png|jpeg|webp);/i;

const markdown = new MarkdownIt({
  html: false,
  linkify: true,
  highlight: (code, language) => coloured(code, languageOf(language)) ?? '',
});
// The default forbids file: too, which is a usual scheme of resources.
markdown.validateLink = (url) => !SCRIPT.test(url) || PICTURE.test(url);
// Blocks whose lines have changed are marked.
markdown.core.ruler.push('changed', (state) => {
  const changed = (state.env as { changed: Set<number> }).changed;
  if (changed.size === 0) return;
  for (const token of state.tokens) {
    const [from, to] = token.map ?? [0, 0];
    if (token.level === 0 && token.nesting >= 0 && [...changed].some((line) => line >= from && line < to)) {
      token.attrJoin('class', 'is-new');
    }
  }
});

interface MarkdownProps {
  text: string;
  uri: string;
  server: string;
  previous: string | null;
}

export function MarkdownView({ text, uri, server, previous }: MarkdownProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const { front, body, skipped } = withoutFront(text);
  useLayoutEffect(() => {
    if (!box.current || text.length > MOST) return;
    const changed = new Set([...changedLines(previous, text)].map((line) => line - skipped));
    const html = markdown.render(visible(body), { changed });
    const fragment = DOMPurify.sanitize(html, {
      RETURN_DOM_FRAGMENT: true,
      USE_PROFILES: { html: true },
      FORBID_TAGS: ['style', 'form', 'input', 'button', 'textarea', 'select', 'iframe'],
      FORBID_ATTR: ['style', 'id', 'name'],
      // Schemes of servers; those of scripts are never allowed. Links are checked below.
      ALLOW_UNKNOWN_PROTOCOLS: true,
    });
    const urls: string[] = [];
    finish(fragment, uri, server, urls);
    box.current.replaceChildren(fragment);
    return () => {
      for (const url of urls) URL.revokeObjectURL(url);
    };
  }, [text, previous]);
  if (text.length > MOST) return <SourceView text={text} uri={uri} type="text/markdown" previous={previous} />;
  return (
    <>
      {front && (
        <details class="front">
          <summary>Front matter</summary>
          <pre>{visible(front)}</pre>
        </details>
      )}
      <div class="markdown" ref={box} />
    </>
  );
}

function withoutFront(text: string): { front: string; body: string; skipped: number } {
  const found = /^(---|\+\+\+)\r?\n([\s\S]{0,20000}?)\r?\n(?:\1|\.\.\.)[ \t]*\r?\n/.exec(text);
  if (!found) return { front: '', body: text, skipped: 0 };
  return { front: found[2] ?? '', body: text.slice(found[0].length), skipped: found[0].split('\n').length - 1 };
}

/** Points links to this page or to a tab of their own, and takes pictures from the server. */
function finish(fragment: DocumentFragment, uri: string, server: string, urls: string[]): void {
  const headings = new Map<string, Element>();
  for (const heading of fragment.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
    const slug = slugOf(heading.textContent ?? '');
    if (!headings.has(slug)) headings.set(slug, heading);
  }
  for (const link of fragment.querySelectorAll('a')) {
    const href = link.getAttribute('href') ?? '';
    link.removeAttribute('target');
    const to = resolved(href, uri);
    if (href.startsWith('#')) {
      link.addEventListener('click', (event) => {
        event.preventDefault();
        headings.get(slugOf(decodeURIComponent(href.slice(1))))?.scrollIntoView();
      });
    } else if (to === null || SCRIPT.test(to)) {
      link.removeAttribute('href');
    } else if (/^(?:https?|mailto):/i.test(to)) {
      link.href = to;
      link.target = '_blank';
      link.rel = 'noopener noreferrer';
    } else {
      link.setAttribute('href', `#${encodeURIComponent(server)}/${encodeURIComponent(to)}`);
    }
  }
  let pictures = 0;
  for (const image of fragment.querySelectorAll('img')) {
    const source = image.getAttribute('src') ?? '';
    if (PICTURE.test(source)) continue;
    const to = resolved(source, uri);
    image.removeAttribute('srcset');
    image.removeAttribute('src');
    if (to === null || /^https?:/i.test(to) || pictures++ >= MOST_PICTURES) {
      const note = document.createElement('span');
      note.className = 'dim';
      note.textContent = `[picture: ${image.alt || source}; nothing is loaded from the network]`;
      image.replaceWith(note);
      continue;
    }
    void picture(image, server, to, urls);
  }
  for (const table of fragment.querySelectorAll('table')) {
    const wide = document.createElement('div');
    wide.className = 'wide';
    wide.tabIndex = 0;
    table.replaceWith(wide);
    wide.append(table);
  }
  for (const code of fragment.querySelectorAll('pre')) code.tabIndex = 0;
}

async function picture(image: HTMLImageElement, server: string, uri: string, urls: string[]): Promise<void> {
  try {
    const answer = await ask<ReadAnswer>('read', { server, uri });
    const one = answer.contents[0];
    const type = plainType(one?.mimeType ?? '');
    if (!one || !IMAGES.has(type)) return;
    const bytes = one.blob !== undefined ? bytesOf(one.blob) : new TextEncoder().encode(one.text ?? '');
    const url = URL.createObjectURL(new Blob([bytes], { type }));
    urls.push(url);
    image.src = url;
  } catch {
    // The text of `alt` stays.
  }
}

function resolved(link: string, base: string): string | null {
  try {
    return new URL(link, base).href;
  } catch {
    return null;
  }
}

function slugOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
    .replace(/ /g, '-');
}
