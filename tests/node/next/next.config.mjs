/** The compiled part of mcp-resources cannot be bundled. `root`: this folder, although one above has packages too. */
export default { serverExternalPackages: ['mcp-resources'], turbopack: { root: import.meta.dirname } };
