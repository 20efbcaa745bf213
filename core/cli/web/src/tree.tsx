// The tree of resources, by the parts of their URIs.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { sizeText, type TreeNode } from './catalog';
import { Icon } from './icons';
import { loadMore } from './sidebar';
import { keyOf, store, useStore } from './store';
import { VirtualList } from './virtual';

const ROW = 28;
/** Most children of a part below the top that is open at first. */
const FEW = 8;

/** The parts that the reader has opened or closed; others are open at the top. */
const expanded = new Map<string, boolean>();

function isExpanded(node: TreeNode): boolean {
  const known = expanded.get(node.key);
  if (known !== undefined) return known;
  const top = store.servers.length > 1 ? 1 : 0;
  const open = node.depth <= top || (node.children.length <= FEW && node.depth <= top + 1);
  // A part that is open stays so when it gets further children.
  expanded.set(node.key, open);
  return open;
}

export function Tree(): JSX.Element {
  const { tree, entries, chosen } = useStore();
  const [active, setActive] = useState(0);
  const [round, setRound] = useState(0);
  const rows = useMemo(() => tree.rows(isExpanded), [tree, entries, entries.length, round]);
  const at = Math.max(0, Math.min(active, rows.length - 1));
  const toggle = (node: TreeNode, open: boolean): void => {
    expanded.set(node.key, open);
    setRound((count) => count + 1);
  };
  const choose = (node: TreeNode): void => {
    if (node.entry) store.choose(node.entry);
    else toggle(node, !isExpanded(node));
  };
  const key = (event: KeyboardEvent): void => {
    const node = rows[at];
    if (!node) return;
    let to: number | null = null;
    const hasChildren = node.children.length > 0;
    if (event.key === 'ArrowDown') to = at + 1;
    else if (event.key === 'ArrowUp') to = at - 1;
    else if (event.key === 'PageDown') to = at + 20;
    else if (event.key === 'PageUp') to = at - 20;
    else if (event.key === 'Home') to = 0;
    else if (event.key === 'End') to = rows.length - 1;
    else if (event.key === 'ArrowRight' && hasChildren) {
      if (isExpanded(node)) to = at + 1;
      else toggle(node, true);
    } else if (event.key === 'ArrowLeft') {
      if (hasChildren && isExpanded(node)) toggle(node, false);
      else to = rows.slice(0, at).findLastIndex((row) => row.depth < node.depth);
    } else if (event.key === 'Enter' || event.key === ' ') choose(node);
    else return;
    event.preventDefault();
    if (to !== null) setActive(Math.max(0, Math.min(rows.length - 1, to)));
  };
  return (
    <VirtualList
      class="rows is-tree"
      role="tree"
      aria-label="Resources"
      tabIndex={0}
      aria-activedescendant={`node-${at}`}
      count={rows.length}
      rowHeight={ROW}
      shown={at}
      onEnd={loadMore}
      onKeyDown={key}
      row={(index) => {
        const node = rows[index];
        if (!node) return null;
        const hasChildren = node.children.length > 0;
        const open = hasChildren && isExpanded(node);
        const { entry } = node;
        const isChosen = chosen !== null && entry !== null && keyOf(chosen) === keyOf(entry);
        const title = entry && (entry.title || entry.name);
        return (
          <div
            key={node.key}
            id={`node-${index}`}
            role="treeitem"
            tabIndex={-1}
            aria-level={node.depth + 1}
            aria-selected={isChosen}
            aria-expanded={hasChildren ? open : undefined}
            class={`row${index === at ? ' is-active' : ''}${entry ? '' : ' is-folder'}`}
            style={{ height: `${ROW}px`, paddingLeft: `${8 + node.depth * 16}px` }}
            onClick={() => {
              setActive(index);
              choose(node);
            }}
          >
            {hasChildren ? (
              <span
                class={open ? 'twist is-open' : 'twist'}
                onClick={(event) => {
                  event.stopPropagation();
                  setActive(index);
                  toggle(node, !open);
                }}
              >
                <Icon name="open" />
              </span>
            ) : (
              <span class="twist" />
            )}
            <span class="label">{node.label}</span>
            {title && title !== node.label && !title.endsWith(`/${node.label}`) && <span class="dim">{title}</span>}
            {hasChildren && !open ? (
              <span class="count">{node.count.toLocaleString('en')}</span>
            ) : (
              entry?.size != null && <small>{sizeText(entry.size)}</small>
            )}
          </div>
        );
      }}
    />
  );
}
