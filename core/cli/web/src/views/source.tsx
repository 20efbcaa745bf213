// Text with line numbers and colours. Lines that have changed are marked.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { VirtualList } from '../virtual';
import { changedLines } from './changes';
import { coloured, colouredLines, languageOf } from './highlight';
import { endOf } from './kind';
import { visible } from './text';

const ROW = 20;
/** Most characters of one line that are shown: a longer one would stop the browser. */
const MOST_LINE = 5_000;

interface SourceProps {
  text: string;
  uri: string;
  type: string;
  previous: string | null;
}

export function SourceView({ text, uri, type, previous }: SourceProps): JSX.Element {
  const lines = useMemo(() => text.replace(/\r\n/g, '\n').split('\n'), [text]);
  const marked = useMemo(() => changedLines(previous, text), [previous, text]);
  const html = useMemo(() => {
    const path = uri.split(/[?#]/)[0] ?? '';
    const name = path.split('/').at(-1) ?? '';
    const isLong = lines.some((line) => line.length > MOST_LINE);
    const all = isLong ? null : coloured(visible(text), languageOf(endOf(uri), type, name));
    return all === null ? null : colouredLines(all);
  }, [text, uri, type]);
  const width = `${String(lines.length).length + 1}ch`;
  return (
    <VirtualList
      class="source"
      role="region"
      aria-label="Source"
      tabIndex={0}
      count={lines.length}
      rowHeight={ROW}
      row={(index) => {
        const line = lines[index] ?? '';
        return (
          <div key={index} class={marked.has(index) ? 'line is-new' : 'line'} style={{ height: `${ROW}px` }}>
            <span class="number" style={{ width }} aria-hidden="true">
              {index + 1}
            </span>
            {html ? (
              <code dangerouslySetInnerHTML={{ __html: html[index] ?? '' }} />
            ) : (
              <code>
                {visible(line.slice(0, MOST_LINE))}
                {line.length > MOST_LINE && <i> … {(line.length - MOST_LINE).toLocaleString('en')} more characters</i>}
              </code>
            )}
          </div>
        );
      }}
    />
  );
}
