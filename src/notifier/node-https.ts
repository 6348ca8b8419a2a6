/** Node's HTTPS, without what an `import` of it would load: see src/lib/node-http.ts. */
export const { Agent, request } = process.getBuiltinModule('node:https');
