// JSON: as a chart, a table or hits where it has their form, else as a tree.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Contents } from '../api';
import type { Chosen } from '../store';
import { ChartView, isSeries } from './chart';
import { HitsView, isHits } from './hits';
import { SourceView } from './source';
import { isRows, RowsView, rowsOf } from './table';
import { ValueTree } from './value';

export interface JsonProps {
  text: string;
  chosen: Chosen;
  contents: Contents;
  previous: string | null;
}

export function JsonView({ text, chosen, contents, previous }: JsonProps): JSX.Element {
  const value = useMemo(() => parsed(text), [text]);
  const before = useMemo(() => (previous === null ? undefined : parsed(previous)), [previous]);
  if (value === undefined) return <SourceView text={text} uri={contents.uri} type="json" previous={previous} />;
  return <StructuredView value={value} before={before} chosen={chosen} />;
}

/** A value of JSON or YAML. */
export function StructuredView({
  value,
  before,
  chosen,
}: {
  value: unknown;
  before: unknown;
  chosen: Chosen;
}): JSX.Element {
  if (isSeries(value)) return <ChartView series={value} />;
  if (isHits(value)) return <HitsView hits={value} chosen={chosen} />;
  if (isRows(value))
    return <RowsView page={rowsOf(value)} before={isRows(before) ? rowsOf(before).rows : null} chosen={chosen} />;
  return <ValueTree value={value} before={before} server={chosen.server} />;
}

/** The value of JSON, or of lines of JSON; `undefined` if the text is neither. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const lines = text.split('\n').filter((line) => line.trim());
    if (lines.length < 2 || lines.length > 100_000) return undefined;
    try {
      return lines.map((line) => JSON.parse(line) as unknown);
    } catch {
      return undefined;
    }
  }
}
