// The page: the sidebar, and what is open beside it.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Entry } from './catalog';
import { Icon } from './icons';
import { ResourcePane } from './resource';
import { Sidebar } from './sidebar';
import { keyOf, store, useStore } from './store';
import { TemplateForm } from './templates';

/** Longer instructions are closed at first. */
const SHORT = 800;

export type Panel = 'resources' | 'templates' | 'basket';

export function App(): JSX.Element {
  const { servers, chosen, hasEnded, isReady } = useStore();
  const [panel, setPanel] = useState<Panel>('resources');
  const [template, setTemplate] = useState<Entry | null>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      const isTyping = /^(?:INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
      if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        setPanel('resources');
        requestAnimationFrame(() => document.getElementById('search')?.focus());
      } else if (event.key === 'Escape' && !isTyping && store.chosen) {
        close();
      }
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
  const close = (): void => {
    setTemplate(null);
    store.choose(null);
    requestAnimationFrame(() => document.querySelector<HTMLElement>('[role=tree], [role=listbox]')?.focus());
  };
  const openTemplate = (entry: Entry | null): void => {
    setTemplate(entry);
    if (entry) store.choose(null);
  };
  const isOpen = chosen !== null || template !== null;
  return (
    <div class={isOpen ? 'page is-open' : 'page'}>
      <header class="top">
        <h1 class="brand">
          <svg viewBox="0 0 16 16" class="logo" aria-hidden="true">
            <rect width="16" height="16" rx="4" />
            <path d="M4 4.5h8M4 8h8M4 11.5h5" />
          </svg>
          Resources
        </h1>
        <ul class="servers" aria-label="Servers">
          {servers.map((server) => (
            <li
              key={server.name}
              class={server.lost ? 'chip is-lost' : server.isConnected ? 'chip is-connected' : 'chip'}
              title={server.lost ?? server.about?.instructions ?? ''}
            >
              <span class="dot" />
              {server.name}
              <small>
                {server.lost ? 'lost' : server.about ? server.about.revision : server.isConnected ? '' : 'connecting'}
              </small>
            </li>
          ))}
        </ul>
      </header>
      <div role="status" class="messages">
        {hasEnded && (
          <p class="banner is-bad">The command has ended, or the connection to it is lost. What is shown may be old.</p>
        )}
        {servers
          .filter((server) => server.lost)
          .map((server) => (
            <p class="banner is-bad" key={server.name}>
              <span>
                <b>{server.name}</b> is lost: {server.lost}. The page connects again when it can.
              </span>
              <button type="button" onClick={() => store.reload(server)}>
                <Icon name="refresh" /> Try now
              </button>
            </p>
          ))}
      </div>
      <main class="both">
        <nav class="side" aria-label="Resources">
          <Sidebar
            panel={panel}
            setPanel={setPanel}
            openTemplate={openTemplate}
            template={template}
            isReady={isReady}
          />
        </nav>
        <section class="main" aria-label="What is open">
          {isOpen && (
            <button type="button" class="back" onClick={close}>
              <Icon name="back" /> Back to the list
            </button>
          )}
          {chosen ? (
            <ResourcePane key={keyOf(chosen)} chosen={chosen} />
          ) : template ? (
            <TemplateForm key={`${template.server}\n${template.uri}`} entry={template} />
          ) : (
            <Welcome />
          )}
        </section>
      </main>
    </div>
  );
}

function Welcome(): JSX.Element {
  const { entries, templates, servers } = useStore();
  const isComplete = servers.every((server) => server.resources.isStarted && server.resources.next === null);
  return (
    <section class="welcome">
      <h2>{servers.map((server) => server.about?.info.title ?? server.about?.info.name ?? server.name).join(', ')}</h2>
      <p class="lead">
        {entries.length.toLocaleString('en')}
        {isComplete ? '' : ' and more'} resources, {templates.length} templates. Choose one on the left.
      </p>
      {servers
        .filter((server) => server.about?.instructions)
        .map((server) => (
          <details key={server.name} class="instructions" open={(server.about?.instructions?.length ?? 0) < SHORT}>
            <summary>Instructions of {server.name}</summary>
            <blockquote>{server.about?.instructions}</blockquote>
          </details>
        ))}
      <dl class="keys">
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>search</dd>
        <dt>
          <kbd>↑</kbd> <kbd>↓</kbd>
        </dt>
        <dd>move in the tree or list</dd>
        <dt>
          <kbd>→</kbd> <kbd>←</kbd>
        </dt>
        <dd>open and close a part of the tree</dd>
        <dt>
          <kbd>Enter</kbd>
        </dt>
        <dd>show a resource</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>back to the list</dd>
      </dl>
      <p class="small">
        <a href="licenses.txt" target="_blank" rel="noreferrer">
          Licences of the libraries in this page
        </a>
      </p>
    </section>
  );
}
