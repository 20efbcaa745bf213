/** The collections of `rag`, and its embedder: the function that makes vectors of texts. */
import { binding, type NativeProvider, type PlainValue } from './binding.js';
import { shown } from './check.js';
import { translated } from './errors.js';
import type { Root } from './provider-options.js';

/** Documents of Google Drive, for `rag`. */
export interface DriveCollection {
  /** JSON with `client_id`, `client_secret` and `refresh_token`: the path of a file, or an environment variable. */
  readonly credentials: string | { readonly env: string };
  /** The id of the only folder to use. Default: all files that the credentials can see. */
  readonly folder?: string;
  /** The id of the shared drive to use. Default: none. */
  readonly drive?: string;
}

/** A collection of `rag`: a directory, or documents of Google Drive, as options or as a YAML or JSON file with them. */
export type Collection = Root | { readonly folder: Root } | { readonly drive: DriveCollection | string };

/** One vector for each text, all of the same length. */
export type Vectors = readonly ArrayLike<number>[];

/**
 * Makes vectors of passages and of questions. It is called with up to 64 texts at once, and must return within a minute. Errors
 * are logged; passages without a vector are ranked by BM25 only.
 */
export type Embedder = (texts: string[]) => Vectors | PromiseLike<Vectors>;

/** A `rag` provider with an embedder. */
export function embedded(options: object, embedder: Embedder): NativeProvider {
  // The compiled part holds the function, so the function must not hold the provider.
  const calls = new binding.NativeEmbeddings();
  const ask = (number: number, texts: string[]): void => {
    Promise.resolve(texts)
      .then(embedder)
      .then((vectors) => calls.made(number, rows(vectors)))
      .catch((error: unknown) => calls.made(number, String(error)));
  };
  return translated(() => binding.NativeProvider.embedded(options as PlainValue, calls, ask));
}

function rows(vectors: unknown): Float32Array[] {
  if (!Array.isArray(vectors)) {
    throw new TypeError(`the embedder returned ${shown(vectors)}, expected an array of vectors`);
  }
  return vectors.map((vector: ArrayLike<number>) => Float32Array.from(vector));
}
