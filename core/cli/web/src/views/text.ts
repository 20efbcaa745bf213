// Text for people: characters that move text, or that a terminal obeys, are shown as what they are.

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const UNSAFE = /[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Text in which such characters are written as `\x1b` or `\u{202e}`. Line feeds and tabs stay. */
export function visible(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(UNSAFE, (one) => {
    const code = one.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  });
}
