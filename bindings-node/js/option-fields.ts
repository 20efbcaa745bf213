/** Converts options to the values that the compiled part takes. */
import { authFields } from './auth.js';
import type { PlainValue, TlsFields } from './binding.js';
import { checkOptions, TEXT } from './check.js';
import { jsonText } from './json.js';
import { checkHttp, DETAILS } from './option-checks.js';
import type { Details, HttpOptions, Tls } from './options.js';

/** The options of an HTTP endpoint as the compiled part takes them. */
export function httpFields(options: HttpOptions): PlainValue {
  checkHttp(options);
  const { auth, sse24, ...rest } = options;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined && value !== null));
  return {
    ...given,
    ...(sse24 && { sse24: sse24 === true ? true : [...sse24] }),
    ...(auth && { auth: authFields(auth) }),
  } as PlainValue;
}

/** The files to serve `https` with, as the compiled part takes them. */
export function tlsFields(tls: Tls): TlsFields {
  checkOptions('tls', tls, { cert: TEXT, key: TEXT });
  if (typeof tls.cert !== 'string' || typeof tls.key !== 'string') {
    throw new TypeError('tls: expected { cert, key }, each the path of a PEM file');
  }
  return { cert: tls.cert, key: tls.key };
}

/** A resource, or the details of a template, as the compiled part takes them. */
export function describe(resource: Details & { readonly uri?: string }): Record<string, PlainValue> {
  const { lastModified, meta } = resource;
  const fields: Record<string, unknown> = { uri: resource.uri };
  for (const name of DETAILS) fields[name] = resource[name];
  if (lastModified instanceof Date) fields.lastModified = lastModified.toISOString();
  if (meta !== undefined) fields.meta = jsonText(meta, undefined, 'meta');
  return fields as Record<string, PlainValue>;
}
