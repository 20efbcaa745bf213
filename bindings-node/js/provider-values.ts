/** The values that options of providers have, besides plain ones. */
import type { ApiDocument, ApiEndpoint, EnvVariable } from './provider-options.js';

/** The path of a directory or file. */
export type Root = string;

/** A directory or file, an array of them, or directories or files by name. */
export type Roots = Root | readonly Root[] | Readonly<Record<string, Root>>;

/** One API: its endpoints by name, or the operations of an OpenAPI document, or both. */
export interface ApiEndpoints extends ApiDocument {
  /** The endpoints by name. Each is a URL, or an {@link ApiEndpoint}. Default: none. */
  readonly endpoints?: Readonly<Record<string, string | ApiEndpoint>>;
}

/** Documents of Google Drive, for `rag`. */
export interface DriveCollection {
  /** JSON with `client_id`, `client_secret` and `refresh_token`: the path of a file, or an environment variable. */
  readonly credentials: string | EnvVariable;
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
