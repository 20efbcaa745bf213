/** Pages that a host shows beside the results of tools. The core knows their media type and the members about them. */
import { binding, type Edit, type NativeFunction, type PlainValue } from './binding.js';
import { checkOptions, checkText, FLAG, LIST, OBJECT, oneOf, type Shape, said, TEXT, TEXTS } from './check.js';
import { translated } from './errors.js';
import { jsonText } from './json.js';
import type { Icon } from './options.js';
import type { JsonObject } from './results.js';

/** The origins that a page may use, such as `https://api.example.com` or `https://*.example.com`. A host blocks all others. */
export interface UiCsp {
  /** Of network requests. Default: none. */
  readonly connectDomains?: readonly string[];
  /** Of scripts, styles, images, fonts and media. Default: none. */
  readonly resourceDomains?: readonly string[];
  /** Of frames inside the page. Default: none. */
  readonly frameDomains?: readonly string[];
  /** Of base URIs of the document. Default: none. */
  readonly baseUriDomains?: readonly string[];
}

/** A browser feature that a page may ask for. */
export type UiPermission = 'camera' | 'microphone' | 'geolocation' | 'clipboardWrite';

/** The options of `ResourceServer.ui`. */
export interface UiOptions {
  /** The HTML5 document. */
  readonly html: string;
  /** The name for programs. Default: the URI. */
  readonly name?: string;
  /** The label for people. Default: none. */
  readonly title?: string;
  /** The description. Default: none. */
  readonly description?: string;
  /** Icons for user interfaces. Default: none. */
  readonly icons?: readonly Icon[];
  /** The origins that the page may use. Default: none. */
  readonly csp?: UiCsp;
  /** The browser features that the page asks for. Default: none. */
  readonly permissions?: readonly UiPermission[];
  /** An origin of its own for the page, in the form that the host documents. Default: chosen by the host. */
  readonly domain?: string;
  /** Whether the host draws a border and a background. Default: the host decides. */
  readonly prefersBorder?: boolean;
  /** Further members of `_meta`. Default: none. */
  readonly meta?: JsonObject;
  /** The scopes that a token must have to see it, all of them. Default: none. */
  readonly scopes?: readonly string[];
  /** How long clients may keep the page, in milliseconds. Default 0. */
  readonly ttlMs?: number;
  /** Whether a cache may share it between clients. Default `private`. */
  readonly cacheScope?: 'public' | 'private';
  /** Whether it replaces a page with the same URI. Default `false`: that is an error. */
  readonly replace?: boolean;
}

const NUMBER = { is: (value: unknown) => typeof value === 'number', expected: 'a number' };
const UI: Shape<UiOptions> = {
  html: TEXT,
  name: TEXT,
  title: TEXT,
  description: TEXT,
  icons: said(LIST, 'an array of icons such as [{ src: "https://example.com/icon.png" }]'),
  csp: OBJECT,
  permissions: said(TEXTS, 'an array of strings such as ["camera", "clipboardWrite"]'),
  domain: TEXT,
  prefersBorder: FLAG,
  meta: OBJECT,
  scopes: said(TEXTS, 'an array of strings such as ["notes:read"]'),
  ttlMs: NUMBER,
  cacheScope: oneOf('public', 'private'),
  replace: FLAG,
};
const DOMAINS = said(TEXTS, 'an array of origins such as ["https://api.example.com"]');
const CSP: Shape<UiCsp> = {
  connectDomains: DOMAINS,
  resourceDomains: DOMAINS,
  frameDomains: DOMAINS,
  baseUriDomains: DOMAINS,
};

/** The edits that register a page. `constant` makes the source of constant contents. */
export function pageEdits(
  uri: string,
  options: UiOptions,
  constant: (html: string) => string | NativeFunction,
): Edit[] {
  checkText('uri', uri, 'ui://shop/order');
  checkOptions('ui', options, UI, { _meta: 'did you mean "meta"?' });
  checkText('html', options.html, '<!doctype html>…');
  if (options.csp !== undefined) checkOptions('csp', options.csp, CSP);
  const { html, meta, replace, ...details } = options;
  const fields = { ...details, uri, ...(meta && { meta: jsonText(meta, undefined, 'meta') }) };
  const added = translated(() => binding.Edit.addPage(fields as unknown as PlainValue, constant(html)));
  return replace === true ? [binding.Edit.removeResource(uri), added] : [added];
}
