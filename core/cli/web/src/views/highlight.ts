// Colours of source text: a subset of the languages of highlight.js.

import DOMPurify from 'dompurify';
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import csharp from 'highlight.js/lib/languages/csharp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import dockerfile from 'highlight.js/lib/languages/dockerfile';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import kotlin from 'highlight.js/lib/languages/kotlin';
import makefile from 'highlight.js/lib/languages/makefile';
import markdown from 'highlight.js/lib/languages/markdown';
import php from 'highlight.js/lib/languages/php';
import python from 'highlight.js/lib/languages/python';
import ruby from 'highlight.js/lib/languages/ruby';
import rust from 'highlight.js/lib/languages/rust';
import scss from 'highlight.js/lib/languages/scss';
import sql from 'highlight.js/lib/languages/sql';
import swift from 'highlight.js/lib/languages/swift';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';

const LANGUAGES = {
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  dockerfile,
  go,
  ini,
  java,
  javascript,
  json,
  kotlin,
  makefile,
  markdown,
  php,
  python,
  ruby,
  rust,
  scss,
  sql,
  swift,
  typescript,
  xml,
  yaml,
};
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

/** The names that types and ends of URIs have beside those that highlight.js knows. */
const ALIASES: Record<string, string> = {
  toml: 'ini',
  conf: 'ini',
  env: 'bash',
  h: 'c',
  mts: 'typescript',
  cts: 'typescript',
};
/** Longer text stays plain, because colouring would take longer than people wait. */
const MOST = 300_000;

/** The language of a name, a media type or the end of a URI. */
export function languageOf(...names: string[]): string | null {
  for (const name of names) {
    const plain = name
      .toLowerCase()
      .replace(/^(?:text|application)\/(?:x-)?/, '')
      .replace(/-?(?:source|script|src)$/, (end) => (end === 'script' ? end : ''));
    const known = ALIASES[plain] ?? plain;
    if (known && known !== 'plain' && hljs.getLanguage(known)) return known;
  }
  return null;
}

/** HTML of the coloured text: spans with classes alone. `null` if it stays plain. */
export function coloured(text: string, language: string | null): string | null {
  if (!language || text.length > MOST) return null;
  try {
    const html = hljs.highlight(text, { language, ignoreIllegals: true }).value;
    return DOMPurify.sanitize(html, { ALLOWED_TAGS: ['span'], ALLOWED_ATTR: ['class'] });
  } catch {
    return null;
  }
}

/** The lines of coloured text. A span over several lines is closed and opened again. */
export function colouredLines(html: string): string[] {
  const open: string[] = [];
  return html.split('\n').map((line) => {
    const before = open.join('');
    for (const [tag] of line.matchAll(/<span[^>]*>|<\/span>/g)) {
      if (tag === '</span>') open.pop();
      else open.push(tag);
    }
    return `${before}${line}${'</span>'.repeat(open.length)}`;
  });
}
