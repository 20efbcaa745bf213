// Tables: rows of a database with the pages that follow, arrays of objects, CSV.
import { dsvFormat } from 'd3-dsv';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask, errorOf, type ReadAnswer } from '../api';
import type { Chosen } from '../store';
import { store } from '../store';
import { VirtualList } from '../virtual';
import { parsed } from './json';
import { SourceView } from './source';
import { visible } from './text';
import { linkOf, scalarText } from './value';

type Row = Record<string, unknown>;

export interface RowPage {
  rows: Row[];
  next: string | null;
}

const ROW = 28;
const MOST_COLUMNS = 200;
const MOST_ROWS = 200_000;
const MOST_CELL = 300;
/** Rows that the widths of columns depend on. */
const SAMPLE = 200;

const isObject = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a value is a page of rows: `{rows: […], next?}`, or an array of objects. */
export function isRows(value: unknown): value is Row[] | { rows: Row[]; next?: string } {
  if (Array.isArray(value)) return value.length > 0 && value.every(isObject);
  return isObject(value) && Array.isArray(value.rows) && value.rows.every(isObject);
}

export function rowsOf(value: Row[] | { rows: Row[]; next?: string }): RowPage {
  if (Array.isArray(value)) return { rows: value, next: null };
  return { rows: value.rows, next: typeof value.next === 'string' ? value.next : null };
}

interface RowsProps {
  page: RowPage;
  before: Row[] | null;
  chosen: Chosen;
}

export function RowsView({ page, before, chosen }: RowsProps): JSX.Element {
  const [rows, setRows] = useState(page.rows);
  const [next, setNext] = useState(page.next);
  const [error, setError] = useState('');
  const isLoading = useRef(false);
  useEffect(() => {
    setRows(page.rows);
    setNext(page.next);
  }, [page.rows]);
  const old = useMemo(() => before && new Set(before.map((row) => JSON.stringify(row))), [before]);
  const columns = useMemo(() => [...new Set(rows.slice(0, 1000).flatMap(Object.keys))].slice(0, MOST_COLUMNS), [rows]);
  const more = async (): Promise<void> => {
    if (next === null || isLoading.current || rows.length > MOST_ROWS) return;
    isLoading.current = true;
    try {
      const answer = await ask<ReadAnswer>('read', { server: chosen.server, uri: next });
      const value = parsed(answer.contents[0]?.text ?? '');
      const following = isRows(value) ? rowsOf(value) : { rows: [], next: null };
      setRows((already) => [...already, ...following.rows]);
      // A page that names itself has no end.
      setNext(following.next === next ? null : following.next);
    } catch (thrown) {
      setError(errorOf(thrown).message);
      setNext(null);
    }
    isLoading.current = false;
  };
  const cells = (index: number): string[] => columns.map((column) => textOf(rows[index]?.[column]));
  return (
    <>
      <Grid
        columns={columns}
        count={rows.length}
        cells={cells}
        server={chosen.server}
        isNew={(index) => old !== null && index < page.rows.length && !old.has(JSON.stringify(rows[index]))}
        onEnd={() => void more()}
      />
      <p class="small" role="status">
        {rows.length.toLocaleString('en')} rows{next === null ? '' : ', more follow as you scroll'}
        {error && <span class="bad"> {error}</span>}
      </p>
    </>
  );
}

export function CsvView({ text, chosen, isTabs }: { text: string; chosen: Chosen; isTabs: boolean }): JSX.Element {
  const rows = useMemo(() => dsvFormat(isTabs ? '\t' : ',').parseRows(text.replace(/^\ufeff/, '')), [text, isTabs]);
  const [head = [], ...body] = rows;
  if (head.length === 0) return <SourceView text={text} uri={chosen.uri} type="csv" previous={null} />;
  return (
    <>
      <Grid
        columns={head.slice(0, MOST_COLUMNS)}
        count={body.length}
        cells={(index) => body[index] ?? []}
        server={chosen.server}
      />
      <p class="small">{body.length.toLocaleString('en')} rows</p>
    </>
  );
}

function textOf(value: unknown): string {
  if (value === undefined) return '';
  return scalarText(value);
}

interface GridProps {
  columns: string[];
  count: number;
  cells: (index: number) => string[];
  server: string;
  isNew?: (index: number) => boolean;
  onEnd?: () => void;
}

function Grid({ columns, count, cells, server, isNew, onEnd }: GridProps): JSX.Element {
  const template = useMemo(() => {
    const widths = columns.map((name) => width(name) + 1);
    for (let index = 0; index < Math.min(count, SAMPLE); index++) {
      cells(index).forEach((cell, at) => {
        widths[at] = Math.max(widths[at] ?? 0, width(cell));
      });
    }
    return widths.map((wide) => `${Math.max(6, Math.min(44, wide)) + 3}ch`).join(' ');
  }, [columns.join('\n'), Math.min(count, SAMPLE)]);
  const row = (index: number): JSX.Element => {
    const own = cells(index);
    return (
      <div
        key={index}
        role="row"
        aria-rowindex={index + 2}
        class={isNew?.(index) ? 'grid-row is-new' : 'grid-row'}
        style={{ gridTemplateColumns: template, height: `${ROW}px` }}
      >
        {columns.map((_, at) => {
          const cell = own[at] ?? '';
          const link = linkOf(cell, server);
          const isNumber = cell !== '' && !Number.isNaN(Number(cell));
          return (
            <div key={at} role="cell" class={isNumber ? 'cell is-number' : 'cell'} title={cell.slice(0, MOST_CELL)}>
              {link ? (
                <button type="button" class="link" onClick={() => store.choose(link)}>
                  {cell}
                </button>
              ) : (
                visible(cell.slice(0, MOST_CELL))
              )}
            </div>
          );
        })}
      </div>
    );
  };
  return (
    <VirtualList
      class="grid"
      role="table"
      aria-label="Rows"
      aria-rowcount={count + 1}
      tabIndex={0}
      count={count}
      rowHeight={ROW}
      headHeight={ROW}
      {...(onEnd ? { onEnd } : {})}
      head={
        <div role="row" aria-rowindex={1} class="grid-row is-head" style={{ gridTemplateColumns: template }}>
          {columns.map((name, at) => (
            <div key={at} role="columnheader" class="cell">
              {visible(name)}
            </div>
          ))}
        </div>
      }
      row={row}
    />
  );
}

/** The width of a text in letters. */
function width(text: string): number {
  let wide = 0;
  for (const letter of text.slice(0, 60)) wide += letter.charCodeAt(0) >= 0x2e80 ? 2 : 1;
  return wide;
}
