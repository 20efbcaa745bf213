// Icons of 16 by 16. They are decoration: the words stand beside them, or in a label.
import type { JSX } from 'preact';

const PATHS = {
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
  download: 'M8 2v8m0 0 3.5-3.5M8 10 4.5 6.5M2.5 13.5h11',
  plus: 'M8 3v10M3 8h10',
  check: 'm3 8.5 3.5 3.5L13 4.5',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm3.3-1.2 3.2 3.2',
  close: 'm4 4 8 8m0-8-8 8',
  back: 'M10 3 5 8l5 5',
  filter: 'M2 4h12M4.5 8h7M7 12h2',
  tree: 'M3 3v9.5h4M3 7.5h4M9 7.5h5M9 12.5h5M5 3h5',
  list: 'M2.5 4h11M2.5 8h11M2.5 12h11',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3',
  open: 'm6 3 5 5-5 5',
} as const;

export function Icon({ name }: { name: keyof typeof PATHS }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
