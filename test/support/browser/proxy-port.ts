/** Where the network of a browser leads out. */
export const PROXY_PORT = 1080;
