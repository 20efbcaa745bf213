// The resources that go into the context of a model.
import type { JSX } from 'preact';
import { globOf } from './catalog';
import { CopyButton } from './copy';
import { Icon } from './icons';
import { keyOf, store, useStore } from './store';

export function Basket(): JSX.Element {
  const { basket } = useStore();
  if (basket.length === 0) {
    return (
      <p class="empty">
        Nothing is chosen yet. Open a resource and press <b>Add to context</b>: here it is counted, and can be copied as
        a prompt or as the list <code>resources</code> of an agent.
      </p>
    );
  }
  const tokens = basket.reduce((sum, item) => sum + item.tokens, 0);
  const isReading = basket.some((item) => item.text === null);
  return (
    <section class="basket">
      <p class="total">
        About <b>{tokens.toLocaleString('en')}</b> tokens{isReading ? ' so far' : ''}
      </p>
      <p class="small">Estimated: four letters are one token, and so is one Chinese, Japanese or Korean character.</p>
      <div class="buttons">
        <CopyButton label="Copy as a prompt" text={prompt} disabled={isReading} />
        <CopyButton label="Copy as resources" text={resourcesOfAgent} />
        <button type="button" onClick={() => store.clearBasket()}>
          Clear
        </button>
      </div>
      <ul class="items">
        {basket.map((item) => (
          <li key={keyOf(item)}>
            <button type="button" class="link" onClick={() => store.choose(item)}>
              {item.uri}
            </button>
            <span class="dim">
              {item.text === null ? 'reading …' : `${item.tokens.toLocaleString('en')} tokens`}
              {item.note && `, ${item.note}`}
            </span>
            <button
              type="button"
              class="square"
              aria-label={`Take out ${item.uri}`}
              onClick={() => void store.toggleBasket(item)}
            >
              <Icon name="close" />
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The contents, each between tags with its URI. */
function prompt(): string {
  const attribute = (text: string): string => text.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;');
  return store.basket
    .filter((item) => item.text)
    .map((item) => {
      const type = item.mimeType ? ` mimeType="${attribute(item.mimeType)}"` : '';
      return `<resource uri="${attribute(item.uri)}"${type}>\n${item.text?.trimEnd()}\n</resource>\n`;
    })
    .join('\n');
}

/** The allow-list of an agent: the key `mcpServers` of its entry in a configuration file. */
function resourcesOfAgent(): string {
  const servers: Record<string, { resources: string[] }> = {};
  for (const { server, uri } of store.basket) {
    servers[server] ??= { resources: [] };
    servers[server].resources.push(globOf(uri));
  }
  return `${JSON.stringify({ mcpServers: servers }, null, 2)}\n`;
}
