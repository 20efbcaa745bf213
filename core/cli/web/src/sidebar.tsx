// The left side: search and filters, the tree or list of resources, the templates.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Panel } from './app';
import { Basket } from './basket';
import { type Entry, type Filters, filtered, isFiltered, NO_FILTERS, sizeText } from './catalog';
import { Icon } from './icons';
import { type BrowsedServer, keyOf, store, useStore } from './store';
import { Tree } from './tree';
import { VirtualList } from './virtual';

interface SidebarProps {
  panel: Panel;
  setPanel: (panel: Panel) => void;
  template: Entry | null;
  openTemplate: (entry: Entry | null) => void;
  isReady: boolean;
}

export function Sidebar({ panel, setPanel, template, openTemplate, isReady }: SidebarProps): JSX.Element {
  const { templates, basket, entries, servers } = useStore();
  const hasMore = servers.some((server) => server.resources.next !== null);
  const tab = (name: Panel, label: string, count: string): JSX.Element => (
    <button
      type="button"
      role="tab"
      id={`tab-${name}`}
      aria-selected={panel === name}
      aria-controls="panel"
      tabIndex={panel === name ? 0 : -1}
      onClick={() => setPanel(name)}
      onKeyDown={(event) => {
        const names: Panel[] = ['resources', 'templates', 'basket'];
        const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
        const next = names[(names.indexOf(name) + step + names.length) % names.length];
        if (step !== 0 && next) {
          setPanel(next);
          requestAnimationFrame(() => document.getElementById(`tab-${next}`)?.focus());
        }
      }}
    >
      {label} <span class="count">{count}</span>
    </button>
  );
  return (
    <>
      <div role="tablist" class="tabs" aria-label="What to list">
        {tab('resources', 'Resources', `${entries.length.toLocaleString('en')}${hasMore ? '+' : ''}`)}
        {tab('templates', 'Templates', `${templates.length}`)}
        {tab('basket', 'Context', `${basket.length}`)}
      </div>
      <div role="tabpanel" id="panel" class="panel" aria-labelledby={`tab-${panel}`}>
        {panel === 'resources' && <Resources isReady={isReady} />}
        {panel === 'templates' && <Templates template={template} openTemplate={openTemplate} />}
        {panel === 'basket' && <Basket />}
      </div>
    </>
  );
}

function Resources({ isReady }: { isReady: boolean }): JSX.Element {
  const { filters, entries, types, servers } = useStore();
  const [isList, setIsList] = useState(false);
  const [hasFilters, setHasFilters] = useState(false);
  const isSearch = isFiltered(filters);
  const found = useMemo(
    () => (isSearch ? filtered(entries, filters) : entries),
    [entries, entries.length, filters, isSearch],
  );
  useEffect(() => {
    if (isSearch) void store.loadAll();
  }, [isSearch]);
  const set = (change: Partial<Filters>): void => {
    store.filters = { ...store.filters, ...change };
    store.changed();
  };
  const isLoading = servers.some((server) => server.resources.isLoading);
  return (
    <>
      <div class="finder">
        <label class="search">
          <Icon name="search" />
          <span class="hidden">Search resources</span>
          <input
            id="search"
            type="search"
            placeholder="Search  ( / )"
            value={filters.text}
            onInput={(event) => set({ text: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === 'ArrowDown')
                document.querySelector<HTMLElement>('[role=tree], [role=listbox]')?.focus();
              if (event.key === 'Escape') set({ text: '' });
            }}
          />
        </label>
        <button
          type="button"
          class="square"
          aria-expanded={hasFilters}
          aria-label="Filters"
          title="Filters"
          onClick={() => setHasFilters(!hasFilters)}
        >
          <Icon name="filter" />
        </button>
        <button
          type="button"
          class="square"
          aria-pressed={isList || isSearch}
          disabled={isSearch}
          aria-label="As a list"
          title={isList ? 'Show a tree' : 'Show a list'}
          onClick={() => setIsList(!isList)}
        >
          <Icon name={isList || isSearch ? 'list' : 'tree'} />
        </button>
      </div>
      {hasFilters && (
        <div class="filters">
          <label>
            Type
            <select value={filters.type} onChange={(event) => set({ type: event.currentTarget.value })}>
              <option value="">any</option>
              {types.map((type) => (
                <option key={type}>{type}</option>
              ))}
            </select>
          </label>
          <label>
            Audience
            <select value={filters.audience} onChange={(event) => set({ audience: event.currentTarget.value })}>
              <option value="">any</option>
              <option value="user">user</option>
              <option value="assistant">assistant</option>
            </select>
          </label>
          <label>
            Priority at least
            <select value={filters.priority} onChange={(event) => set({ priority: Number(event.currentTarget.value) })}>
              <option value="0">any</option>
              {[0.25, 0.5, 0.75, 0.9, 1].map((value) => (
                <option key={value} value={value}>
                  {value}
                </option>
              ))}
            </select>
          </label>
          {servers.length > 1 && (
            <label>
              Server
              <select value={filters.server} onChange={(event) => set({ server: event.currentTarget.value })}>
                <option value="">all</option>
                {servers.map((server) => (
                  <option key={server.name}>{server.name}</option>
                ))}
              </select>
            </label>
          )}
          <button type="button" class="quiet" onClick={() => set(NO_FILTERS)}>
            Clear
          </button>
        </div>
      )}
      {isSearch && (
        <p class="found" role="status">
          {found.length.toLocaleString('en')} of {entries.length.toLocaleString('en')}
          {isLoading ? ', loading …' : ''}
        </p>
      )}
      {!isReady || (entries.length === 0 && isLoading) ? (
        <p class="empty">Loading …</p>
      ) : found.length === 0 ? (
        <p class="empty">{isSearch ? 'Nothing has these words.' : 'The servers list no resources.'}</p>
      ) : isList || isSearch ? (
        <EntryList entries={found} />
      ) : (
        <Tree />
      )}
      <ListNotes servers={servers} />
    </>
  );
}

/** Why a list is not whole. */
function ListNotes({ servers }: { servers: BrowsedServer[] }): JSX.Element | null {
  const failed = servers.filter((server) => server.resources.error && server.resources.error.kind !== 'unsupported');
  if (failed.length === 0) return null;
  return (
    <div class="notes">
      {failed.map((server) => (
        <p key={server.name}>
          <b>{server.name}</b>: {server.resources.error?.message}
          <button type="button" class="quiet" onClick={() => store.reload(server)}>
            <Icon name="refresh" /> Load again
          </button>
        </p>
      ))}
    </div>
  );
}

/** Loads further parts when the end of what is loaded comes near. */
export function loadMore(): void {
  const next = store.servers.find((server) => server.resources.next !== null && !server.resources.isLoading);
  if (next) void store.more(next, 'resources');
}

function EntryList({ entries }: { entries: Entry[] }): JSX.Element {
  const { chosen } = useStore();
  const [active, setActive] = useState(0);
  const at = Math.min(active, entries.length - 1);
  return (
    <VirtualList
      class="rows is-list"
      role="listbox"
      aria-label="Resources"
      tabIndex={0}
      aria-activedescendant={`entry-${at}`}
      count={entries.length}
      rowHeight={46}
      shown={at}
      onEnd={loadMore}
      onKeyDown={(event) => {
        const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
        const step = steps[event.key];
        const to = event.key === 'Home' ? 0 : event.key === 'End' ? entries.length - 1 : step ? at + step : null;
        if (to !== null) {
          event.preventDefault();
          setActive(Math.max(0, Math.min(entries.length - 1, to)));
        }
        const entry = entries[at];
        if (event.key === 'Enter' && entry) store.choose(entry);
      }}
      row={(index) => {
        const entry = entries[index];
        if (!entry) return null;
        const isChosen = chosen !== null && keyOf(chosen) === keyOf(entry);
        return (
          <div
            key={index}
            id={`entry-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={isChosen}
            class={index === at ? 'row is-active' : 'row'}
            style={{ height: '46px' }}
            onClick={() => {
              setActive(index);
              store.choose(entry);
            }}
          >
            <span class="row-title">
              {entry.title || entry.name || entry.uri}
              {entry.size !== null && <small>{sizeText(entry.size)}</small>}
            </span>
            <span class="row-uri">{entry.uri}</span>
          </div>
        );
      }}
    />
  );
}

/** The title of a template; empty if it only repeats the template. */
function titleOf(entry: Entry): string {
  return [entry.title, entry.name, entry.description].find((text) => text && text !== entry.uri) ?? '';
}

function Templates({
  template,
  openTemplate,
}: {
  template: Entry | null;
  openTemplate: (entry: Entry) => void;
}): JSX.Element {
  const { templates, servers } = useStore();
  const visible = () => {
    for (const server of servers) if (server.templates.next !== null) void store.more(server, 'templates');
  };
  useEffect(visible, [templates.length]);
  if (templates.length === 0) return <p class="empty">The servers have no templates.</p>;
  return (
    <ul class="rows templates">
      {templates.slice(0, 1000).map((entry) => (
        <li key={`${entry.server}\n${entry.uri}`}>
          <button
            type="button"
            class={entry === template ? 'row is-chosen' : 'row'}
            aria-current={entry === template ? 'true' : undefined}
            onClick={() => openTemplate(entry)}
          >
            {titleOf(entry) && <span class="row-title">{titleOf(entry)}</span>}
            <span class="row-uri">{entry.uri}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
