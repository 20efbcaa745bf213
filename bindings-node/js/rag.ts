/** What documents are retrieved from, and the function that makes vectors of texts, as the compiled part calls it. */
import { binding, type NativeProvider, type PlainValue } from './binding.js';
import { shown } from './check.js';
import { translated } from './errors.js';
import type { Root } from './provider.js';

/** Documents of Google Drive, for `rag`. */
export interface DriveCollection {
  /** JSON with `client_id`, `client_secret` and `refresh_token`: a file, or a variable of the environment. */
  readonly credentials: string | { readonly env: string };
  /** Only the files in the folder with this id. Default: all that the credentials can see. */
  readonly folder?: string;
  /** The files of the shared drive with this id. Default: none in particular. */
  readonly drive?: string;
}

/** A collection of `rag`: a directory, or documents of Google Drive, with their options or a YAML or JSON file that has them. */
export type Collection = Root | { readonly folder: Root } | { readonly drive: DriveCollection | string };

/** A vector of each text, all of one length. */
export type Vectors = readonly ArrayLike<number>[];

/**
 * Makes vectors of passages and of questions. It is called with up to 64 texts at once, and a provider's thread waits for it, a
 * minute at most. A failure is logged, and passages that have no vector are found by their words.
 */
export type Embedder = (texts: string[]) => Vectors | PromiseLike<Vectors>;

/** A provider of documents that are found by vectors too. */
export function embedded(options: object, embedder: Embedder): NativeProvider {
  // The compiled part holds the function, so that may not hold the provider.
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
