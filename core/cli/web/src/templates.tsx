// A template as a form: each variable with what the server proposes as one types.
import type { JSX } from 'preact';
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { ask, errorOf } from './api';
import { type Entry, variablesOf } from './catalog';
import { Icon } from './icons';
import { store } from './store';

/** The pause after a key before the server is asked, in ms. */
const PAUSE = 120;
const MOST_PROPOSED = 20;

export function TemplateForm({ entry }: { entry: Entry }): JSX.Element {
  const variables = useMemo(() => variablesOf(entry.uri), [entry.uri]);
  const [values, setValues] = useState<Record<string, string>>({});
  const [uri, setUri] = useState('');
  const [error, setError] = useState('');
  useEffect(() => {
    let isOld = false;
    const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''));
    const lists = Object.fromEntries(variables.filter((one) => one.isList).map((one) => [one.name, true]));
    ask<{ uri: string }>('expand', { template: entry.uri, values: given, lists }).then(
      (answer) => {
        if (isOld) return;
        setUri(answer.uri);
        setError('');
      },
      (thrown) => !isOld && setError(errorOf(thrown).message),
    );
    return () => {
      isOld = true;
    };
  }, [values]);
  return (
    <section class="template">
      <p class="kind">Template of {entry.server}</p>
      <h2>{entry.title || entry.name}</h2>
      <p class="uri">{entry.uri}</p>
      {entry.description && <p>{entry.description}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (uri) store.choose({ server: entry.server, uri });
        }}
      >
        {variables.map((variable) => (
          <VariableField
            key={variable.name}
            entry={entry}
            name={variable.name}
            hint={variable.isList ? 'several values, with commas between them' : variable.isOptional ? 'optional' : ''}
            values={values}
            set={(value) => setValues((before) => ({ ...before, [variable.name]: value }))}
          />
        ))}
        <p class="expanded" role="status">
          {error ? <span class="bad">{error}</span> : <code>{uri}</code>}
        </p>
        <button type="submit" class="primary" disabled={!uri || error !== ''}>
          <Icon name="open" /> Read it
        </button>
      </form>
    </section>
  );
}

interface FieldProps {
  entry: Entry;
  name: string;
  hint: string;
  values: Record<string, string>;
  set: (value: string) => void;
}

/** A combo box: an input whose list of proposals comes from the server. */
function VariableField({ entry, name, hint, values, set }: FieldProps): JSX.Element {
  const id = useId();
  const [proposed, setProposed] = useState<string[]>([]);
  const [total, setTotal] = useState(0);
  const [isOpen, setIsOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const timer = useRef(0);
  const round = useRef(0);
  const value = values[name] ?? '';
  const propose = (text: string): void => {
    clearTimeout(timer.current);
    const own = ++round.current;
    timer.current = setTimeout(async () => {
      const context = Object.fromEntries(Object.entries(values).filter(([other, given]) => other !== name && given));
      try {
        const question = { server: entry.server, template: entry.uri, variable: name, value: text, context };
        const answer = await ask<{ values: string[]; total: number | null }>('complete', question);
        if (own !== round.current) return;
        setProposed(answer.values.slice(0, MOST_PROPOSED));
        setTotal(answer.total ?? answer.values.length);
        setActive(-1);
        setIsOpen(answer.values.length > 0);
      } catch {
        // A server without completion proposes nothing.
        setIsOpen(false);
      }
    }, PAUSE) as unknown as number;
  };
  const take = (text: string): void => {
    set(text);
    setIsOpen(false);
    round.current++;
  };
  return (
    <div class="field">
      <label for={id}>
        {name} {hint && <small>{hint}</small>}
      </label>
      <input
        id={id}
        role="combobox"
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={active >= 0 ? `${id}-${active}` : undefined}
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={(event) => {
          set(event.currentTarget.value);
          propose(event.currentTarget.value);
        }}
        onFocus={() => propose(value)}
        onBlur={() => {
          round.current++;
          clearTimeout(timer.current);
          setIsOpen(false);
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
            event.preventDefault();
            if (!isOpen) return propose(value);
            const step = event.key === 'ArrowDown' ? 1 : -1;
            setActive(Math.max(0, Math.min(proposed.length - 1, active + step)));
          } else if (event.key === 'Enter' && isOpen && active >= 0) {
            event.preventDefault();
            take(proposed[active] ?? '');
          } else if (event.key === 'Escape' && isOpen) {
            event.stopPropagation();
            setIsOpen(false);
          }
        }}
      />
      <ul id={`${id}-list`} role="listbox" aria-label={`Values of ${name}`} class="proposals" hidden={!isOpen}>
        {proposed.map((text, index) => (
          <li
            key={text}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === active}
            onMouseDown={(event) => {
              event.preventDefault();
              take(text);
            }}
          >
            {text}
          </li>
        ))}
      </ul>
      {isOpen && total > proposed.length && <small class="dim">{total} in all; type more</small>}
    </div>
  );
}
