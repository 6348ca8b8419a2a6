/** Port on the loopback of an instance with ports, where the helper of the direct way takes the gateways of ports. */
export const DIRECT_PORT = 44_190;
