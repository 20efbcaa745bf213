// A value of JSON or YAML as a tree that one opens and closes. Values that have changed are marked.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { type Chosen, store } from '../store';
import { visible } from './text';

/** Most members that are shown at once. */
const STEP = 200;
/** Deeper values are closed at first. */
const OPEN = 2;
/** A value in itself has no end. */
const DEEPEST = 200;
const MOST_TEXT = 5_000;

interface ValueProps {
  name?: string;
  value: unknown;
  before: unknown;
  server: string;
  depth?: number;
}

export function ValueTree({ value, before, server }: ValueProps): JSX.Element {
  return (
    <div class="value-tree">
      <ValueNode value={value} before={before} server={server} />
    </div>
  );
}

function ValueNode({ name, value, before, server, depth = 0 }: ValueProps): JSX.Element {
  const members = membersOf(value);
  const [isOpen, setIsOpen] = useState(depth < OPEN && (members?.length ?? 0) <= STEP * 2);
  const [count, setCount] = useState(STEP);
  const label = name !== undefined && <span class="member">{visible(name)}: </span>;
  if (!members || depth > DEEPEST) {
    const isNew = before !== undefined && before !== value;
    return (
      <div class={isNew ? 'value is-new' : 'value'} key={isNew ? String(value) : ''}>
        {label}
        <Scalar value={value} server={server} />
      </div>
    );
  }
  const old = membersOf(before);
  const oldMembers = old && new Map(old);
  const brackets = Array.isArray(value) ? '[]' : '{}';
  return (
    <div class="value">
      <button type="button" class="opener" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        {label}
        <span class="dim">
          {brackets[0]}
          {members.length}
          {brackets[1]}
        </span>
      </button>
      {isOpen && (
        <div class="members">
          {members.slice(0, count).map(([key, member]) => (
            <ValueNode
              key={key}
              name={key}
              value={member}
              before={oldMembers ? (oldMembers.has(key) ? oldMembers.get(key) : null) : undefined}
              server={server}
              depth={depth + 1}
            />
          ))}
          {members.length > count && (
            <button type="button" class="quiet" onClick={() => setCount(count + STEP * 5)}>
              {members.length - count} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function membersOf(value: unknown): [string, unknown][] | null {
  if (typeof value !== 'object' || value === null || value instanceof Date) return null;
  return Object.entries(value);
}

/** A text, number or the like. A text that is a URI of the server opens it. */
export function Scalar({ value, server }: { value: unknown; server: string }): JSX.Element {
  if (typeof value !== 'string') return <span class={`is-${typeof value}`}>{scalarText(value)}</span>;
  const link = linkOf(value, server);
  if (link) {
    return (
      <button type="button" class="link" onClick={() => store.choose(link)}>
        {visible(value)}
      </button>
    );
  }
  const cut = value.length > MOST_TEXT ? `${value.slice(0, MOST_TEXT)} …` : value;
  return <span class="is-string">{visible(cut)}</span>;
}

export function scalarText(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  return String(value);
}

/** The resource that a text names, unless it is of the web. */
export function linkOf(text: string, server: string): Chosen | null {
  const isUri = text.length < 2_000 && /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/\S*$/i.test(text) && !text.includes('{');
  return isUri ? { server, uri: text } : null;
}
