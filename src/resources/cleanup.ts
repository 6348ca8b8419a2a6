/**
 * Keeps an object until the controller has dealt with what is left of it: of an instance its pods, its disk, its bill and
 * its history; of credentials of a registry the Secret with the password.
 */
export const FINALIZER = 'berth.dev/cleanup';
