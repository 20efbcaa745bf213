/** The compiled part of the package: the engine, and what connects it to Node. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type * as Binding from '../binding.js';

export type {
  Admitted,
  Answers,
  Arrival,
  BlockFields,
  Channel,
  Config,
  Edit,
  EmbeddedTransport,
  Embedding,
  Endpoint,
  Entry,
  Exchange,
  Found,
  Gather,
  HttpServer,
  Identified,
  NativeClient,
  NativeEmbeddings,
  NativeFunction,
  NativeProvider,
  NativeStream,
  OutputFields,
  PlainValue,
  PromptMessageFields,
  Question,
  Quick,
  QuickClient,
  QuickInput,
  Receiving,
  Refusal,
  RequestFields,
  ResponseHead,
  ScopeFields,
  SenderFields,
  Server,
  SharedEvents,
  TlsFields,
  TokenVerifier,
  Turned,
  VerifiedFields,
} from '../binding.js';

const NAME = 'mcp-resources';
const PLATFORMS = 'Linux (x64 and arm64, with glibc or musl) and macOS (x64 and arm64)';
/** The names of builds for this processor, by platform: the first that is there and can be loaded is taken. */
const BUILDS: Record<string, readonly string[]> = ['x64', 'arm64'].includes(process.arch)
  ? {
      linux: ['gnu', 'musl'].map((libc) => `linux-${process.arch}-${libc}`),
      darwin: [`darwin-${process.arch}`],
    }
  : {};

export const binding: typeof Binding = load();

/** The actions for the event loop, the kinds of arrivals of a client, and what to do for a message of the SDK. */
export const { LoopTask, ArrivalKind, TakenBy } = binding;
export type LoopTask = Binding.LoopTask;
export type ArrivalKind = Binding.ArrivalKind;
export type TakenBy = Binding.TakenBy;

/** A build in this package, else the package of the platform. */
function load(): typeof Binding {
  const failures: unknown[] = [];
  for (const build of BUILDS[process.platform] ?? []) {
    const file = path.join(__dirname, '..', `${NAME}.${build}.node`);
    try {
      return require(existsSync(file) ? file : `${NAME}-${build}`);
    } catch (error) {
      failures.push(error);
    }
  }
  throw new AggregateError(failures, missing());
}

/** Why there is nothing to load: the system has no build, or the file is not where this one is, as after bundling. */
function missing(): string {
  const system = `${process.platform} on ${process.arch}`;
  const names = (BUILDS[process.platform] ?? []).map((build) => `${NAME}.${build}.node`);
  if (names.length === 0) {
    return `there is no build of ${NAME} for ${system}, only for ${PLATFORMS}; on Windows, use WSL`;
  }
  return (
    `the compiled part of ${NAME} for ${system} cannot be loaded from ${path.join(__dirname, '..')}: none of ` +
    `${names.join(', ')} works there. If the program is bundled, leave the package out of the bundle: ` +
    `esbuild --external:${NAME}, or serverExternalPackages in the configuration of Next. Else run npm install on this system, without --omit=optional; there are builds for ${PLATFORMS}`
  );
}
