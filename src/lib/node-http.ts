/**
 * Node's HTTP. An `import` of node:http reads everything that it exports, `WebSocket` among it, for which Node loads its
 * own copy of undici: 10 MiB of memory that no part of Berth uses.
 */
export const { Agent, createServer, IncomingMessage, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');
