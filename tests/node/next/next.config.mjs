/** The compiled part of mcp-resources cannot be bundled. */
export default { serverExternalPackages: ['mcp-resources'] };
