// Patches: added and removed lines in colours.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { VirtualList } from '../virtual';
import { visible } from './text';

export interface DiffLine {
  kind: 'added' | 'removed' | 'same' | 'hunk' | 'file';
  text: string;
}

const ROW = 20;
const MOST_LINE = 2_000;

export function DiffView({ text }: { text: string }): JSX.Element {
  const lines = useMemo(() => {
    let isBody = false;
    return text
      .replace(/\n$/, '')
      .split('\n')
      .map((line): DiffLine => {
        if (line.startsWith('@@')) {
          isBody = true;
          return { kind: 'hunk', text: line };
        }
        if (line.startsWith('diff ') || line.startsWith('Index: ')) {
          isBody = false;
          return { kind: 'file', text: line };
        }
        if (isBody && line.startsWith('+')) return { kind: 'added', text: line };
        if (isBody && line.startsWith('-')) return { kind: 'removed', text: line };
        return { kind: isBody ? 'same' : 'hunk', text: line };
      });
  }, [text]);
  return <DiffLines lines={lines} />;
}

export function DiffLines({ lines }: { lines: DiffLine[] }): JSX.Element {
  const added = lines.filter((line) => line.kind === 'added').length;
  const removed = lines.filter((line) => line.kind === 'removed').length;
  return (
    <>
      <p class="small">
        <b class="plus">+{added}</b> <b class="minus">−{removed}</b> lines
      </p>
      <VirtualList
        class="source is-diff"
        role="region"
        aria-label="Differences"
        tabIndex={0}
        count={lines.length}
        rowHeight={ROW}
        row={(index) => {
          const line = lines[index];
          return (
            line && (
              <div key={index} class={`line is-${line.kind}`} style={{ height: `${ROW}px` }}>
                <code>{visible(line.text.slice(0, MOST_LINE)) || ' '}</code>
              </div>
            )
          );
        }}
      />
    </>
  );
}
