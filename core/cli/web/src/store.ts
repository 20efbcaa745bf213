// The state of the page: servers, their lists, the chosen resource, the basket. One object; components render it again when it
// says that it has changed.
import { useEffect, useState } from 'preact/hooks';
import {
  type AboutAnswer,
  type ApiError,
  ApiFailure,
  ask,
  type Contents,
  errorOf,
  type ListAnswer,
  type ReadAnswer,
  type ServerState,
} from './api';
import { decoded, type Entry, entryOf, type Filters, NO_FILTERS, ResourceTree, tokensOf } from './catalog';

/** A list that is loaded part by part. */
export interface LoadedList {
  entries: Entry[];
  next: number | null;
  isStarted: boolean;
  isLoading: boolean;
  error: ApiError | null;
}

export interface BrowsedServer extends ServerState {
  about: AboutAnswer | null;
  resources: LoadedList;
  templates: LoadedList;
  /** The number of the list: a change of the list begins another one. */
  round: number;
}

export interface Chosen {
  server: string;
  uri: string;
}

export interface BasketItem extends Chosen {
  mimeType: string;
  /** `null` while it is read. */
  text: string | null;
  tokens: number;
  note: string;
}

/** What the command says about a watched resource. */
export interface WatchedChange extends Chosen {
  changed: string;
  contents: Contents[] | null;
}

/** Most entries that the page keeps for a server. */
const MOST_ENTRIES = 200_000;
/** Most resources in the basket. */
const MOST_BASKET = 200;

function emptyList(): LoadedList {
  return { entries: [], next: null, isStarted: false, isLoading: false, error: null };
}

class BrowseStore {
  servers: BrowsedServer[] = [];
  entries: Entry[] = [];
  templates: Entry[] = [];
  tree = new ResourceTree(false);
  filters: Filters = NO_FILTERS;
  types: string[] = [];
  chosen: Chosen | null = null;
  basket: BasketItem[] = [];
  hasEnded = false;
  isReady = false;
  private stream = 0;
  private readonly listeners = new Set<() => void>();
  private readonly watchers = new Map<string, Set<(change: WatchedChange | ApiError) => void>>();
  private isScheduled = false;

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Renders once for all changes of a frame. */
  changed(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    const run = (): void => {
      if (!this.isScheduled) return;
      this.isScheduled = false;
      for (const listener of this.listeners) listener();
    };
    requestAnimationFrame(run);
    // A page in the background has no frames.
    setTimeout(run, 100);
  }

  /** Connects to the command. */
  start(): void {
    const events = new EventSource('api/events');
    const on = <T>(name: string, handle: (data: T) => void): void => {
      events.addEventListener(name, (event) => handle(JSON.parse((event as MessageEvent<string>).data) as T));
    };
    events.onerror = () => {
      this.hasEnded = true;
      this.changed();
    };
    on<{ stream: number; servers: ServerState[] }>('hello', (hello) => this.hello(hello.stream, hello.servers));
    on<{ server: string; lost: string | null }>('server', ({ server, lost }) => {
      const own = this.server(server);
      if (!own) return;
      own.lost = lost;
      own.isConnected = lost === null;
      if (lost === null) {
        void this.describe(own);
        if (own.resources.error) this.reload(own);
      }
      this.changed();
    });
    on<{ server: string }>('lists', ({ server }) => {
      const own = this.server(server);
      if (own) this.reload(own);
    });
    on<WatchedChange>('changed', (change) => this.tell(change, change));
    on<Chosen & { error: ApiError }>('ended', (ended) => this.tell(ended, ended.error));
    addEventListener('hashchange', () => this.follow());
  }

  server(name: string): BrowsedServer | undefined {
    return this.servers.find((server) => server.name === name);
  }

  /** Loads the next part of a server's list. */
  async more(server: BrowsedServer, kind: 'resources' | 'templates'): Promise<void> {
    const list = server[kind];
    if (list.isLoading || (list.isStarted && list.next === null)) return;
    const round = server.round;
    list.isLoading = true;
    this.changed();
    try {
      const question = { server: server.name, templates: kind === 'templates', next: list.next };
      const answer = await ask<ListAnswer>('list', question);
      if (round !== server.round) return;
      this.take(server, kind, answer);
    } catch (thrown) {
      if (round !== server.round) return;
      // The command has ended the list because others were begun.
      if (thrown instanceof ApiFailure && thrown.error.kind === 'question' && list.next !== null) {
        this.reload(server);
        return;
      }
      list.error = errorOf(thrown);
      list.next = null;
    }
    list.isStarted = true;
    list.isLoading = false;
    this.changed();
  }

  /** Loads whatever is not loaded, for a search. */
  async loadAll(): Promise<void> {
    for (const server of this.servers) {
      const round = server.round;
      while (server.resources.next !== null && server.round === round && !server.resources.isLoading) {
        await this.more(server, 'resources');
      }
    }
  }

  /** Begins the lists of a server again. What is shown stays until the first part has come. */
  reload(server: BrowsedServer): void {
    server.round++;
    server.resources = { ...emptyList(), entries: [] };
    server.templates = emptyList();
    void this.more(server, 'resources');
    void this.more(server, 'templates');
  }

  choose(chosen: Chosen | null): void {
    location.hash = chosen ? `${encodeURIComponent(chosen.server)}/${encodeURIComponent(chosen.uri)}` : '';
  }

  /** The entry of a resource, if it was listed. */
  entry({ server, uri }: Chosen): Entry | undefined {
    return this.server(server)?.resources.entries.find((entry) => entry.uri === uri);
  }

  read(chosen: Chosen): Promise<ReadAnswer> {
    return ask<ReadAnswer>('read', chosen);
  }

  /** Watches a resource until the returned function is called. */
  watch(chosen: Chosen, report: (change: WatchedChange | ApiError) => void): () => void {
    const key = keyOf(chosen);
    const own = this.watchers.get(key) ?? new Set();
    this.watchers.set(key, own);
    if (own.size === 0) void this.askWatch('watch', chosen);
    own.add(report);
    return () => {
      own.delete(report);
      if (own.size === 0 && this.watchers.delete(key)) void this.askWatch('unwatch', chosen);
    };
  }

  isInBasket(chosen: Chosen): boolean {
    return this.basket.some((item) => keyOf(item) === keyOf(chosen));
  }

  /** Adds a resource to the basket, or takes it out. */
  async toggleBasket(chosen: Chosen): Promise<void> {
    if (this.isInBasket(chosen)) {
      this.basket = this.basket.filter((item) => keyOf(item) !== keyOf(chosen));
      this.changed();
      return;
    }
    if (this.basket.length >= MOST_BASKET) return;
    const item: BasketItem = {
      server: chosen.server,
      uri: chosen.uri,
      mimeType: this.entry(chosen)?.mimeType ?? '',
      text: null,
      tokens: 0,
      note: '',
    };
    this.basket = [...this.basket, item];
    this.changed();
    try {
      const answer = await this.read(chosen);
      const texts = answer.contents.filter((one) => one.text !== undefined);
      item.text = texts.map((one) => one.text).join('\n');
      item.tokens = tokensOf(item.text);
      item.mimeType ||= answer.contents[0]?.mimeType ?? '';
      if (texts.length < answer.contents.length) item.note = 'binary contents are left out';
      if (texts.some((one) => one.isCut)) item.note = 'cut, because it is too long';
    } catch (thrown) {
      item.text = '';
      item.note = errorOf(thrown).message;
    }
    this.basket = [...this.basket];
    this.changed();
  }

  clearBasket(): void {
    this.basket = [];
    this.changed();
  }

  private hello(stream: number, states: ServerState[]): void {
    this.stream = stream;
    const isFirst = !this.isReady;
    this.hasEnded = false;
    this.isReady = true;
    if (isFirst) {
      this.tree = new ResourceTree(states.length > 1);
      this.servers = states.map((state) => ({
        ...state,
        about: null,
        resources: emptyList(),
        templates: emptyList(),
        round: 0,
      }));
      for (const server of this.servers) {
        void this.more(server, 'resources').then(() => {
          void this.more(server, 'templates');
          void this.describe(server);
        });
      }
      this.follow();
    } else {
      for (const key of this.watchers.keys()) {
        const [server = '', uri = ''] = key.split('\n');
        void this.askWatch('watch', { server, uri });
      }
    }
    this.changed();
  }

  private follow(): void {
    const [server, uri] = location.hash.slice(1).split('/', 2).map(decoded);
    this.chosen = server && uri && this.server(server) ? { server, uri } : null;
    this.changed();
  }

  private async describe(server: BrowsedServer): Promise<void> {
    try {
      server.about = await ask<AboutAnswer>('about', { server: server.name });
      server.isConnected = true;
      server.lost = null;
    } catch {
      server.about = null;
    }
    this.changed();
  }

  private take(server: BrowsedServer, kind: 'resources' | 'templates', answer: ListAnswer): void {
    const list = server[kind];
    const isFirst = !list.isStarted;
    for (const raw of answer.items) list.entries.push(entryOf(server.name, raw));
    list.next = answer.next;
    list.error = answer.error ?? null;
    if (list.entries.length >= MOST_ENTRIES && answer.next !== null) {
      list.next = null;
      list.error = { kind: 'cut', message: `The page shows the first ${MOST_ENTRIES} resources of this server.` };
    }
    if (kind === 'templates') {
      this.templates = this.servers.flatMap((each) => each.templates.entries);
      return;
    }
    this.entries = this.servers.flatMap((each) => each.resources.entries);
    if (isFirst) {
      this.tree = new ResourceTree(this.servers.length > 1);
      for (const entry of this.entries) this.tree.add(entry);
    } else {
      for (const entry of list.entries.slice(-answer.items.length)) this.tree.add(entry);
    }
    const types = answer.items.map((raw) => raw.mimeType).filter((type) => typeof type === 'string' && type !== '');
    this.types = [...new Set([...this.types, ...(types as string[])])].sort();
  }

  private tell(at: Chosen, change: WatchedChange | ApiError): void {
    for (const report of this.watchers.get(keyOf(at)) ?? []) report(change);
  }

  private async askWatch(name: 'watch' | 'unwatch', { server, uri }: Chosen): Promise<void> {
    try {
      await ask(name, { stream: this.stream, server, uri });
    } catch {
      // The page still shows what it has read.
    }
  }
}

export function keyOf({ server, uri }: Chosen): string {
  return `${server}\n${uri}`;
}

export const store = new BrowseStore();

/** Renders the component again when the store changes. */
export function useStore(): BrowseStore {
  const [, render] = useState(0);
  useEffect(() => store.subscribe(() => render((count) => count + 1)), []);
  return store;
}
