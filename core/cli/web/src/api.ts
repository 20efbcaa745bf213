// The questions of the page to the command, and the events that the command sends.

/** An error as the command reports it. */
export interface ApiError {
  kind: string;
  message: string;
}

/** Contents of a resource, possibly cut. */
export interface Contents {
  uri: string;
  mimeType?: string;
  text?: string;
  /** Base64. */
  blob?: string;
  /** Bytes, before anything was cut. */
  size: number;
  isCut: boolean;
  error?: string;
  _meta?: Record<string, unknown>;
}

export interface ReadAnswer {
  server: string;
  uri: string;
  ttlMs: number;
  contents: Contents[];
}

export interface ListAnswer {
  items: Record<string, unknown>[];
  next: number | null;
  error?: ApiError;
}

export interface AboutAnswer {
  revision: string;
  info: { name?: string; version?: string; title?: string };
  capabilities: Record<string, unknown>;
  instructions: string | null;
  hasSubscriptions: boolean;
  hasCompletions: boolean;
}

export interface ServerState {
  name: string;
  isConnected: boolean;
  lost: string | null;
  isRestricted: boolean;
}

/** The failure of a question. */
export class ApiFailure extends Error {
  constructor(readonly error: ApiError) {
    super(error.message);
  }
}

/** Asks the command. Fails with an `ApiFailure`. */
export async function ask<T>(name: string, question: object): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`api/${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(question),
    });
  } catch {
    throw new ApiFailure({ kind: 'ended', message: 'The command has ended. Start it again, and open its new URL.' });
  }
  if (!response.ok) throw new ApiFailure({ kind: 'question', message: await response.text() });
  const answer = (await response.json()) as T & { error?: ApiError };
  // A list may have entries and an error.
  if (answer.error && !('items' in answer)) throw new ApiFailure(answer.error);
  return answer;
}

/** The error of anything that was thrown. */
export function errorOf(thrown: unknown): ApiError {
  return thrown instanceof ApiFailure ? thrown.error : { kind: 'page', message: String(thrown) };
}

/** The address of a download of the whole contents. */
export function downloadUrl(server: string, uri: string): string {
  return `api/download?server=${encodeURIComponent(server)}&uri=${encodeURIComponent(uri)}`;
}

/** The bytes of base64. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}
