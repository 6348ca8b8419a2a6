import helmet from 'helmet';

/** Nothing in an answer of ours may run, frame or load; pages loosen it for themselves. */
const CONTENT_POLICY = {
  useDefaults: false,
  directives: { 'default-src': ["'none'"], 'frame-ancestors': ["'none'"] },
};

/** For everything but the API: helmet with all it has. */
export const security = helmet({ contentSecurityPolicy: CONTENT_POLICY });

/** For JSON that web pages of any origin read: without the fields that say something about pages and their windows. */
export const apiSecurity = helmet({
  contentSecurityPolicy: CONTENT_POLICY,
  crossOriginResourcePolicy: { policy: 'cross-origin' },
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  referrerPolicy: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xFrameOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
});
