// Directories: contents that are the children, each with a URI and an empty text.
import type { JSX } from 'preact';
import type { Contents } from '../api';
import { decoded } from '../catalog';
import { type Chosen, store } from '../store';

const DIRECTORY = 'inode/directory';
/** The key in `_meta` of the last child that says that there are more. */
const MORE = 'io.github.mcp-resources/more';

export function isDirectory(uri: string, contents: Contents[]): boolean {
  return (
    contents.length > 0 &&
    contents.every((one) => one.text === '' && !one.isCut && (one.uri !== uri || one.mimeType === DIRECTORY))
  );
}

export function DirectoryView({ chosen, contents }: { chosen: Chosen; contents: Contents[] }): JSX.Element {
  const children = contents.filter((one) => one.uri !== chosen.uri);
  if (children.length === 0) return <p class="empty">The directory is empty.</p>;
  const hasMore = contents.at(-1)?._meta?.[MORE] !== undefined;
  return (
    <>
      <ul class="directory">
        {children.map((child) => (
          <li key={child.uri}>
            <button type="button" class="link" onClick={() => store.choose({ server: chosen.server, uri: child.uri })}>
              {child.mimeType === DIRECTORY ? '📁 ' : ''}
              {nameIn(chosen.uri, child.uri)}
            </button>
            <span class="dim">{child.mimeType === DIRECTORY ? '' : child.mimeType}</span>
          </li>
        ))}
      </ul>
      {hasMore && <p class="small">The directory has more children than the server shows.</p>}
    </>
  );
}

function nameIn(directory: string, uri: string): string {
  const base = directory.endsWith('/') ? directory : `${directory}/`;
  return decoded(uri.startsWith(base) ? uri.slice(base.length) : uri);
}
