// A button that copies, and says so.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Icon } from './icons';

interface CopyProps {
  label: string;
  text: () => string;
  disabled?: boolean;
}

export function CopyButton({ label, text, disabled }: CopyProps): JSX.Element {
  const [said, setSaid] = useState('');
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      setSaid('Copied');
    } catch {
      setSaid('The browser does not allow it');
    }
    setTimeout(() => setSaid(''), 1500);
  };
  return (
    <button type="button" disabled={disabled} onClick={() => void copy()}>
      <Icon name={said === 'Copied' ? 'check' : 'copy'} />
      <span aria-live="polite">{said || label}</span>
    </button>
  );
}
