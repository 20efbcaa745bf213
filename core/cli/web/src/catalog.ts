// Resources as the page holds them: entries, filters, and the tree that their URIs make. No DOM, no requests.

export interface Entry {
  server: string;
  /** The URI, or the text of a template. */
  uri: string;
  name: string;
  title: string;
  description: string;
  mimeType: string;
  size: number | null;
  audience: string[];
  priority: number | null;
  lastModified: string;
  /** The entry as the server sent it. */
  raw: Record<string, unknown>;
  /** The text that a search looks at. */
  searched: string;
}

export interface Filters {
  text: string;
  type: string;
  audience: string;
  priority: number;
  server: string;
}

export const NO_FILTERS: Filters = { text: '', type: '', audience: '', priority: 0, server: '' };

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

export function entryOf(server: string, raw: Record<string, unknown>): Entry {
  const annotations = (typeof raw.annotations === 'object' && raw.annotations ? raw.annotations : {}) as Record<
    string,
    unknown
  >;
  const uri = text(raw.uri) || text(raw.uriTemplate);
  const name = text(raw.name);
  const title = text(raw.title);
  const description = text(raw.description);
  return {
    server,
    uri,
    name,
    title,
    description,
    mimeType: text(raw.mimeType),
    size: typeof raw.size === 'number' ? raw.size : null,
    audience: Array.isArray(annotations.audience) ? annotations.audience.map(text).filter(Boolean) : [],
    priority: typeof annotations.priority === 'number' ? annotations.priority : null,
    lastModified: text(annotations.lastModified),
    raw,
    searched: `${decoded(uri)}\n${uri}\n${name}\n${title}\n${description}`.toLowerCase(),
  };
}

export function isFiltered(filters: Filters): boolean {
  return (
    filters.text.trim() !== '' ||
    filters.type !== '' ||
    filters.audience !== '' ||
    filters.priority > 0 ||
    filters.server !== ''
  );
}

/** The entries that have all the words, and whatever else the filters ask for. */
export function filtered(entries: Entry[], filters: Filters): Entry[] {
  const words = filters.text.toLowerCase().split(/\s+/).filter(Boolean);
  return entries.filter(
    (entry) =>
      (filters.server === '' || entry.server === filters.server) &&
      (filters.type === '' || entry.mimeType === filters.type) &&
      (filters.audience === '' || entry.audience.length === 0 || entry.audience.includes(filters.audience)) &&
      (filters.priority === 0 || (entry.priority ?? -1) >= filters.priority) &&
      words.every((word) => entry.searched.includes(word)),
  );
}

/** A part of a URI, or a server. */
export interface TreeNode {
  /** Unique in the tree. */
  key: string;
  label: string;
  depth: number;
  children: TreeNode[];
  byLabel: Map<string, TreeNode>;
  entry: Entry | null;
  /** The number of resources below. */
  count: number;
}

export class ResourceTree {
  readonly root: TreeNode = node('', '', -1);

  constructor(private readonly hasServers: boolean) {}

  add(entry: Entry): void {
    let at = this.root;
    at.count++;
    for (const label of this.path(entry)) {
      let next = at.byLabel.get(label);
      if (!next) {
        next = node(`${at.key}\n${label}`, label, at.depth + 1);
        at.byLabel.set(label, next);
        at.children.push(next);
      }
      at = next;
      at.count++;
    }
    if (at.entry) {
      // Such as `a` and `a/`.
      const twin = node(`${at.key}\n${entry.uri}`, at.label, at.depth + 1);
      twin.entry = entry;
      at.children.push(twin);
    } else {
      at.entry = entry;
    }
  }

  /** The visible nodes, from top to bottom. */
  rows(isExpanded: (node: TreeNode) => boolean): TreeNode[] {
    const rows: TreeNode[] = [];
    const walk = (parent: TreeNode): void => {
      for (const child of parent.children) {
        rows.push(child);
        if (child.children.length > 0 && isExpanded(child)) walk(child);
      }
    };
    walk(this.root);
    return rows;
  }

  private path(entry: Entry): string[] {
    const { group, parts } = uriParts(entry.uri);
    return this.hasServers ? [entry.server, group, ...parts] : [group, ...parts];
  }
}

function node(key: string, label: string, depth: number): TreeNode {
  return { key, label, depth, children: [], byLabel: new Map(), entry: null, count: 0 };
}

/** The scheme with its authority, and the parts of the path. */
export function uriParts(uri: string): { group: string; parts: string[] } {
  const found = /^([a-z][a-z0-9+.-]*:)(\/\/[^/?#]*)?([^?#]*)(.*)$/is.exec(uri);
  if (!found) return { group: uri, parts: [] };
  const [, scheme = '', authority, path = '', rest = ''] = found;
  if (authority === undefined) return { group: scheme, parts: path || rest ? [decoded(path + rest)] : [] };
  const parts = path.split('/').filter(Boolean).map(decoded);
  const group = `${scheme}${authority}${authority === '//' ? '/' : ''}`;
  if (rest) parts.push(decoded(rest));
  return { group, parts };
}

/** Percent-decoded text, or the text itself if it is not UTF-8. */
export function decoded(part: string): string {
  if (!part.includes('%')) return part;
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** A number of bytes for people. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 'B';
  for (const next of units) {
    if (value < 1000) break;
    value /= 1000;
    unit = next;
  }
  return `${value.toFixed(1)} ${unit}`;
}

/** The variables of a template, in order. `isList` where the template takes several values. */
export function variablesOf(template: string): { name: string; isList: boolean; isOptional: boolean }[] {
  const found: { name: string; isList: boolean; isOptional: boolean }[] = [];
  for (const [, operator = '', list = ''] of template.matchAll(/\{([+#./;?&]?)([^{}]+)\}/g)) {
    for (const spec of list.split(',')) {
      const name = spec.replace(/(?:\*|:\d+)$/, '').trim();
      if (name && !found.some((other) => other.name === name)) {
        found.push({ name, isList: spec.endsWith('*'), isOptional: operator === '?' || operator === '&' });
      }
    }
  }
  return found;
}

/** About how many tokens a text has: a letter of Chinese, Japanese or Korean is one, and so are four others. */
export function tokensOf(value: string): number {
  let wide = 0;
  for (let at = 0; at < value.length; at++) {
    if (value.charCodeAt(at) >= 0x2e80) wide++;
  }
  return Math.ceil(wide + (value.length - wide) / 4);
}

/** A URI as a glob that matches it alone. */
export function globOf(uri: string): string {
  return uri.replace(/[*?\\]/g, '\\$&');
}

/** A media type without parameters, in lower case. */
export function plainType(type: string): string {
  return (type.split(';')[0] ?? '').trim().toLowerCase();
}
