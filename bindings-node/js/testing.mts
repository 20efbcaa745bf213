/** The same module for `import`: one copy serves both module systems. */
export * from './testing.js';
