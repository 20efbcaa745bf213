// What a change of a watched resource has changed.
import { diffLines } from 'diff';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Contents } from '../api';
import { sizeText } from '../catalog';
import { type DiffLine, DiffLines } from './diff';
import { textOf } from './kind';

/** Longer texts are not compared. */
const MOST = 400_000;
/** Most lines that may differ; comparing more would take too long. */
const MOST_EDITS = 4_000;
/** Lines around a change. */
const AROUND = 3;

function compared(before: string, after: string): ReturnType<typeof diffLines> | undefined {
  if (before.length + after.length > MOST) return undefined;
  return diffLines(before, after, { maxEditLength: MOST_EDITS });
}

/** The lines, from 0, that the newer text has and the older has not. */
export function changedLines(before: string | null, after: string): Set<number> {
  const lines = new Set<number>();
  if (before === null || before === after) return lines;
  let at = 0;
  for (const part of compared(before, after) ?? []) {
    if (part.removed) continue;
    for (let index = 0; part.added && index < part.count; index++) lines.add(at + index);
    at += part.count;
  }
  return lines;
}

/** JSON on several lines, so that a change of one value is a change of one line. */
function laidOut(text: string): string {
  if (!/^\s*[[{]/.test(text) || text.length > MOST / 2) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export function Changes({ before, after }: { before: Contents[]; after: Contents[] }): JSX.Element {
  const lines = useMemo(() => {
    const old = before.map((one) => laidOut(textOf(one) ?? `${sizeText(one.size)} of bytes`)).join('\n');
    const now = after.map((one) => laidOut(textOf(one) ?? `${sizeText(one.size)} of bytes`)).join('\n');
    const parts = compared(old, now);
    if (!parts) return null;
    const all: DiffLine[] = [];
    for (const part of parts) {
      const kind = part.added ? 'added' : part.removed ? 'removed' : 'same';
      const sign = part.added ? '+' : part.removed ? '-' : ' ';
      const own = part.value.replace(/\n$/, '').split('\n');
      const text = own.map((line) => ({ kind, text: sign + line }) as DiffLine);
      if (kind !== 'same' || text.length <= 2 * AROUND) all.push(...text);
      else {
        const skipped: DiffLine = { kind: 'hunk', text: `… ${text.length - 2 * AROUND} lines` };
        all.push(...text.slice(0, AROUND), skipped, ...text.slice(-AROUND));
      }
    }
    return all;
  }, [before, after]);
  if (!lines) return <p class="empty">The two are too long, or too different, to compare.</p>;
  return <DiffLines lines={lines} />;
}
