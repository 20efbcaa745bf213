// How contents are shown: by their media type, else by the end of their URI, else by their beginning.
import { bytesOf, type Contents } from '../api';
import { plainType } from '../catalog';

export type Kind =
  | 'markdown'
  | 'source'
  | 'json'
  | 'yaml'
  | 'csv'
  | 'diff'
  | 'image'
  | 'audio'
  | 'video'
  | 'pdf'
  | 'hex';

const BY_TYPE: Record<string, Kind> = {
  'text/markdown': 'markdown',
  'text/x-markdown': 'markdown',
  'application/json': 'json',
  'application/yaml': 'yaml',
  'application/x-yaml': 'yaml',
  'text/yaml': 'yaml',
  'text/x-yaml': 'yaml',
  'text/csv': 'csv',
  'text/tab-separated-values': 'csv',
  'text/x-diff': 'diff',
  'text/x-patch': 'diff',
  'application/pdf': 'pdf',
};
const BY_END: Record<string, Kind> = {
  md: 'markdown',
  markdown: 'markdown',
  json: 'json',
  yaml: 'yaml',
  yml: 'yaml',
  csv: 'csv',
  tsv: 'csv',
  diff: 'diff',
  patch: 'diff',
};
/** Pictures that an `img` shows without running anything. */
export const IMAGES = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
  'image/bmp',
  'image/x-icon',
  'image/vnd.microsoft.icon',
  'image/svg+xml',
]);

export function endOf(uri: string): string {
  const path = uri.split(/[?#]/)[0] ?? '';
  return /\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? '';
}

export function kindOf(contents: Contents, type: string): Kind {
  const plain = plainType(type);
  if (IMAGES.has(plain)) return 'image';
  if (contents.blob !== undefined) {
    if (plain.startsWith('audio/')) return 'audio';
    if (plain.startsWith('video/')) return 'video';
    if (textOf(contents) === null) return 'hex';
  }
  const known = BY_TYPE[plain] ?? (plain.endsWith('+json') ? 'json' : plain.endsWith('+yaml') ? 'yaml' : undefined);
  if (known) return known;
  const ended = BY_END[endOf(contents.uri)];
  if (ended && (plain === '' || plain === 'text/plain' || plain === 'application/octet-stream')) return ended;
  const text = textOf(contents) ?? '';
  if (/^(?:diff --git |--- \S.*\n\+\+\+ )/.test(text)) return 'diff';
  return 'source';
}

/** Contents as text; `null` if they are bytes that are no text. */
export function textOf(contents: Contents): string | null {
  if (contents.text !== undefined) return contents.text;
  if (!contents.blob) return null;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(contents.blob));
    return text.includes('\0') ? null : text;
  } catch {
    return null;
  }
}
