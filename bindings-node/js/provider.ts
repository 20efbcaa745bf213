/** Sources of resources that are ready to serve, and what is asked of them here. */
import { binding, type Given, type NativeProvider } from './binding.js';
import { bytesOf } from './bytes.js';
import { COUNT, checkOptions, either, FLAG, isObject, oneOf, type Shape, shown, TEXT, TEXTS } from './check.js';
import { translated } from './errors.js';

/** The compiled part of what `ResourceServer.mount` is given. */
export let nativeOf: (provider: unknown, call: string) => NativeProvider;

let make: (native: NativeProvider) => Provider;
let makeMemory: (native: NativeProvider) => Memory;

/**
 * A source of resources that is not a function of yours: see `ResourceServer.mount`. Its own threads answer: a read of it
 * never waits for the event loop. Made by a function of `providers`.
 */
export class Provider {
  readonly #native: NativeProvider;

  static {
    make = (native) => new Provider(native);
    nativeOf = (provider, call) => {
      if (typeof provider === 'object' && provider !== null && #native in provider) return provider.#native;
      throw new TypeError(
        `${call} takes providers, such as providers.memory(), not ${shown(provider)}${fix(provider)}`,
      );
    };
  }

  /** Made by {@link clock} and {@link memory} alone. */
  protected constructor(native: NativeProvider) {
    if (!(native instanceof binding.NativeProvider)) {
      throw new TypeError('a provider is made by a function, such as providers.memory()');
    }
    this.#native = native;
    Object.freeze(this);
  }
}

/** What is said of an entry that is put into a {@link Memory}. */
export interface PutOptions {
  /** Its media type. Default: `text/plain` for a text, `application/octet-stream` for bytes. */
  readonly mimeType?: string;
}

/**
 * A folder in memory, at `memory:///{+path}`: a program puts entries in and takes them out, clients list, read and watch
 * them. Every server that mounts it serves the same entries. Made by {@link memory}.
 */
export class Memory extends Provider {
  static {
    makeMemory = (native) => new Memory(native);
  }

  /**
   * Puts a text or bytes at a path, such as `notes/today.md`, in the place of what was there. Clients that watch it are
   * told, and those that listen to the list if it is new. The bytes are copied.
   *
   * @throws {TypeError} the path is no string, the body neither a text nor bytes, or an option is wrong.
   */
  put(path: string, body: string | Uint8Array, options: PutOptions = {}): void {
    checkPath(path);
    const content = typeof body === 'string' ? body : bytesOf(body);
    if (content === undefined) {
      const json = 'for a value, pass JSON.stringify(value) and { mimeType: "application/json" }';
      throw new TypeError(`the body at "${path}" is ${shown(body)}, expected a string or bytes; ${json}`);
    }
    checkOptions(`put("${path}", …)`, options, { mimeType: TEXT }, { mime_type: 'did you mean "mimeType"?' });
    const { mimeType } = options;
    translated(() => nativeOf(this, 'put()').put(path, content, mimeType));
  }

  /** Takes out what is at a path; `false` if nothing is. Clients that watch it or listen to the list are told. */
  remove(path: string): boolean {
    checkPath(path);
    return nativeOf(this, 'remove()').remove(path);
  }

  /** How many entries there are. */
  get size(): number {
    return nativeOf(this, 'size').size;
  }
}

/** What is set for all roots of {@link files}. */
export interface FilesOptions {
  /** Globs: only files whose path within their root matches one of them are served; `*` is within a segment, `**` over segments. Default: all. */
  readonly include?: string | readonly string[];
  /** Globs: nothing whose path within its root matches one of them is served, nor what is beneath it. Default: none. */
  readonly exclude?: string | readonly string[];
  /** Whether what `.gitignore`, `.ignore` and `.git/info/exclude` name is not served. Default `true`. */
  readonly gitignore?: boolean;
  /** Whether names that begin with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /** Whether symbolic links are followed that lead to a place beneath the same root. Default `never`. */
  readonly symlinks?: 'never' | 'inside';
  /** How many files are listed at most; all can be read. Default 1,000. */
  readonly listMax?: number;
  /** Whether clients are told of changes. Default `true`. */
  readonly watch?: boolean;
  /** How many directories the system watches at most; beyond it they are looked at from time to time. Default 8,192. */
  readonly watchDirs?: number;
  /** The largest file that is read, in bytes. Default: what an answer of the server may have. */
  readonly maxBytes?: number | null;
}

const GLOBS = either('a glob or an array of globs', TEXT, TEXTS);
const FILES_SHAPE: Shape<FilesOptions> = {
  include: GLOBS,
  exclude: GLOBS,
  gitignore: FLAG,
  hidden: FLAG,
  symlinks: oneOf('never', 'inside'),
  listMax: COUNT,
  watch: FLAG,
  watchDirs: COUNT,
  maxBytes: either('a whole number of bytes or null', COUNT, { is: (value) => value === null, expected: '' }),
};

/** A directory. */
export type Root = string;

/**
 * The time: `clock:///now`, and `clock:///{+zone}` for a zone of the IANA database, such as `clock:///Asia/Tokyo`. Clients
 * that subscribe to it are notified every second. A server can mount one clock.
 */
export function clock(): Provider {
  return declared('clock', null);
}

/**
 * The files of directories: `file:///NAME/`, `file:///{root}/{+path}`, and `?lines=10-40` for a part of a text (S-01).
 * Clients that watch a file or a directory are told when it changes, and those that listen to the lists when files come and
 * go. Nothing outside a directory is read, whatever its links say.
 *
 * @param roots - a directory, which has its own name, several, or directories by the names that they are to have.
 * @throws {TypeError} a directory is not there, two have one name, or an option is wrong.
 */
export function files(
  roots: Root | readonly Root[] | Readonly<Record<string, Root>>,
  options: FilesOptions = {},
): Provider {
  const named = isObject(roots);
  const all = named ? Object.values(roots) : typeof roots === 'string' ? [roots] : roots;
  if (!TEXTS.is(all)) {
    const how = "expected a directory, an array of them, or names with a directory each, such as { app: '.' }";
    throw new TypeError(`files() takes what it is to serve: ${shown(roots)}, ${how}`);
  }
  checkOptions('files()', options, FILES_SHAPE);
  // What an author names is no name of an option: it stands in pairs.
  return declared('files', { ...given(options), roots: named ? Object.entries(roots) : roots });
}

/** The members that have a value. */
function given(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function declared(kind: string, options: unknown): Provider {
  return make(translated(() => binding.NativeProvider.declared(kind, options as Given)));
}

/** A folder in memory, empty. */
export function memory(): Memory {
  return makeMemory(binding.NativeProvider.memory());
}

function checkPath(path: unknown): void {
  if (typeof path !== 'string')
    throw new TypeError(`the path is ${shown(path)}, expected a string such as "notes/a.md"`);
}

/** What was probably meant. */
function fix(given: unknown): string {
  if (typeof given === 'function') return '; call it, and mount what it returns';
  if (Array.isArray(given)) return '; spread it: mount(...list)';
  if (typeof (given as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function')
    return '; await it first';
  if (typeof given === 'string') return '; for what stands in a file, use resource() with a function that reads it';
  return '';
}
