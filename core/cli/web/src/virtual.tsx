// A list of rows of one height, of which only the visible ones are in the document.
import type { ComponentChildren, HTMLAttributes, JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** The tallest element that browsers lay out correctly, with room to spare. */
const TALLEST = 15_000_000;
const AROUND = 8;

export interface VirtualListProps extends Omit<HTMLAttributes<HTMLDivElement>, 'children' | 'onScroll'> {
  count: number;
  rowHeight: number;
  row: (index: number) => ComponentChildren;
  /** Scrolls to this row when it changes. */
  shown?: number;
  /** Called when the last row is near. */
  onEnd?: () => void;
  /** Rows above the list that stay. */
  head?: ComponentChildren;
  headHeight?: number;
}

export function VirtualList(props: VirtualListProps): JSX.Element {
  const { count, rowHeight, row, shown, onEnd, head, headHeight = 0, ...rest } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  // A million rows are taller than an element can be: then the scroll bar moves through them faster than the text.
  const whole = count * rowHeight;
  const tall = Math.min(whole, TALLEST);
  const spread = whole > tall ? (whole - view.height) / Math.max(1, tall - view.height) : 1;
  const measure = (): void => {
    const own = box.current;
    if (own) setView({ top: own.scrollTop, height: own.clientHeight });
  };
  useLayoutEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const offset = view.top * spread;
  const first = Math.max(0, Math.floor(offset / rowHeight) - AROUND);
  const last = Math.min(count, Math.ceil((offset + view.height) / rowHeight) + AROUND);
  useLayoutEffect(() => {
    const own = box.current;
    if (shown === undefined || shown < 0 || !own) return;
    const at = (shown * rowHeight) / spread;
    if (at < own.scrollTop) own.scrollTop = at;
    const under = at + rowHeight + headHeight - own.clientHeight;
    if (under > own.scrollTop) own.scrollTop = under;
  }, [shown]);
  useLayoutEffect(() => {
    if (last >= count) onEnd?.();
  }, [last, count]);
  const rows: ComponentChildren[] = [];
  for (let index = first; index < last; index++) rows.push(row(index));
  const shift = spread === 1 ? first * rowHeight : view.top - (offset - first * rowHeight);
  return (
    <div {...rest} ref={box} onScroll={measure}>
      {head}
      <div role="presentation" class="virtual-space" style={{ height: `${tall}px` }}>
        <div role="presentation" class="virtual-rows" style={{ transform: `translateY(${Math.max(0, shift)}px)` }}>
          {rows}
        </div>
      </div>
    </div>
  );
}
