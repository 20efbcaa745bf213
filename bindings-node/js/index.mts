/** The same package for `import`: one copy serves both module systems. */
export * from './index.js';
