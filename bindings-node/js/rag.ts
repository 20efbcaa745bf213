/** The collections of `rag`, and its embedder: the function that makes vectors of texts. */
import { binding, type NativeProvider, type PlainValue } from './binding.js';
import { shown } from './check.js';
import type { Embedder } from './provider-values.js';

/** A `rag` provider with an embedder. */
export function embedded(options: PlainValue, embedder: Embedder): NativeProvider {
  // The compiled part holds the function, so the function must not hold the provider.
  const calls = new binding.NativeEmbeddings();
  const ask = (number: number, texts: string[]): void => {
    Promise.resolve(texts)
      .then(embedder)
      .then((vectors) => calls.made(number, rows(vectors)))
      .catch((error: unknown) => calls.made(number, String(error)));
  };
  return binding.NativeProvider.embedded(options, calls, ask);
}

function rows(vectors: unknown): Float32Array[] {
  if (!Array.isArray(vectors)) {
    throw new TypeError(`the embedder returned ${shown(vectors)}, expected an array of vectors`);
  }
  return vectors.map((vector: ArrayLike<number>) => Float32Array.from(vector));
}
