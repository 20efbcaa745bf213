// Bytes that are no text.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { bytesOf, type Contents } from '../api';
import { VirtualList } from '../virtual';

const ROW = 20;
const WIDE = 16;

export function HexView({ contents }: { contents: Contents }): JSX.Element {
  const bytes = useMemo(
    () => (contents.blob !== undefined ? bytesOf(contents.blob) : new TextEncoder().encode(contents.text ?? '')),
    [contents],
  );
  if (bytes.length === 0) return <p class="empty">Empty.</p>;
  return (
    <VirtualList
      class="source is-hex"
      role="region"
      aria-label="Bytes"
      tabIndex={0}
      count={Math.ceil(bytes.length / WIDE)}
      rowHeight={ROW}
      row={(index) => {
        const own = [...bytes.subarray(index * WIDE, (index + 1) * WIDE)];
        const hex = own.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
        const letters = own.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '·')).join('');
        return (
          <div key={index} class="line" style={{ height: `${ROW}px` }}>
            <code>
              <span class="number">{(index * WIDE).toString(16).padStart(8, '0')}</span>
              {`  ${hex.padEnd(WIDE * 3 - 1)}  ${letters}`}
            </code>
          </div>
        );
      }}
    />
  );
}
