import type * as OpenId from 'openid-client';
import { ApiError } from '../http/interface/errors/api-error.ts';
import type { Clock } from '../lib/clock.ts';
import { HangGuard, HangingError } from '../lib/hang-guard.ts';
import type { User } from './reviews.ts';
import { newSessionId, type ProviderSession } from './session.ts';
import { ClaimError, type ClaimSettings, namesGroups, renewedUser, userOfClaims } from './oidc-user.ts';

/** How the dashboard signs people in at an OpenID provider. */
interface OidcSettings {
  issuer: URL;
  clientId: string;
  /** Absent for a public client, which PKCE alone protects. */
  clientSecret: string | undefined;
  /** Where people reach Berth: scheme and host. */
  publicUrl: URL;
  /** Of the button. */
  name: string;
  scopes: string;
  claims: ClaimSettings;
}

/** Seconds that an answer of the provider may take. */
const TIMEOUT_SECONDS = 10;
const RETRY_SECONDS = 5;
/** Milliseconds that a session lasts at most, and where the provider cannot be asked again. */
const LIFETIME_MS = 60 * 60_000;
const UNCHECKED_LIFETIME_MS = 15 * 60_000;
const CALLBACK = '/dashboard/oidc/callback';

/** What must come back from the provider for a sign-in that began here. */
export interface Flow {
  state: string;
  nonce: string;
  verifier: string;
}

interface Library {
  openid: typeof OpenId;
  configuration: OpenId.Configuration;
}

function unavailable(cause: unknown): ApiError {
  return new ApiError('dashboard_unavailable', 'The identity provider does not answer. Try again in some seconds.', {
    retryAfterSeconds: RETRY_SECONDS,
    cause,
  });
}

/** An OpenID provider at which people sign in, by the authorization code flow with PKCE. */
export class OidcProvider {
  readonly #settings: OidcSettings;
  readonly #clock: Clock;
  readonly #guard: HangGuard;
  #library: Promise<Library> | undefined;

  constructor(settings: OidcSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    this.#guard = new HangGuard(clock);
  }

  /** What people call it. */
  get name(): string {
    return this.#settings.name;
  }

  /** Begins a sign-in: where the browser goes, and what to remember until it comes back. Rejects with a 503. */
  async begin(): Promise<{ url: URL; flow: Flow }> {
    const { openid, configuration } = await this.#load();
    const flow = {
      state: openid.randomState(),
      nonce: openid.randomNonce(),
      verifier: openid.randomPKCECodeVerifier(),
    };
    const url = openid.buildAuthorizationUrl(configuration, {
      redirect_uri: new URL(CALLBACK, this.#settings.publicUrl).href,
      scope: this.#settings.scopes,
      state: flow.state,
      nonce: flow.nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(flow.verifier),
      code_challenge_method: 'S256',
    });
    return { url, flow };
  }

  /**
   * Ends a sign-in with the query that the provider sent the browser back with. Rejects when the answer is not the one to
   * `flow`, is forged, or names nobody whom the cluster could know (`ClaimError`).
   */
  async finish(query: string, flow: Flow): Promise<ProviderSession> {
    const { openid, configuration } = await this.#load();
    // The address that the provider knows, whatever host the request named.
    const url = new URL(`${CALLBACK}${query}`, this.#settings.publicUrl);
    const checks = {
      pkceCodeVerifier: flow.verifier,
      expectedState: flow.state,
      expectedNonce: flow.nonce,
      idTokenExpected: true,
    };
    const tokens = await this.#ask(() => openid.authorizationCodeGrant(configuration, url, checks));
    const claims = tokens.claims();
    if (claims === undefined) throw new Error('The provider sent no ID token.');
    const { access_token: access } = tokens;
    const signedIn = userOfClaims(claims, this.#settings.claims);
    const info = await this.#info({ access, subject: claims.sub });
    const lifetime = info === undefined ? UNCHECKED_LIFETIME_MS : LIFETIME_MS;
    const ofToken = tokens.expiresIn() === undefined ? lifetime : (tokens.expiresIn() ?? 0) * 1000;
    const known = { user: signedIn, namesGroups: info !== undefined && namesGroups(info, this.#settings.claims) };
    const user = info === undefined ? signedIn : renewedUser(known, info, this.#settings.claims);
    if (user === undefined) throw new ClaimError('The ID token and the UserInfo endpoint name two different people.');
    const expires = this.#clock.now() + Math.min(lifetime, ofToken);
    return { id: newSessionId(user.username), ...known, access, subject: claims.sub, user, expires };
  }

  /**
   * Asks the provider about a session now. Undefined when it no longer knows the account or has ended the session there.
   * Without a UserInfo endpoint nobody can be asked, and the session is short. Rejects with a 503.
   */
  async check(session: ProviderSession): Promise<User | undefined> {
    try {
      const claims = await this.#info(session);
      return claims === undefined ? session.user : renewedUser(session, claims, this.#settings.claims);
    } catch (error) {
      if (isRefusal(error)) return undefined;
      throw error;
    }
  }

  /** What the UserInfo endpoint says of the person; undefined where there is none. Rejects with its refusal, or a 503. */
  async #info({ access, subject }: Pick<ProviderSession, 'access' | 'subject'>) {
    const { openid, configuration } = await this.#load();
    if (configuration.serverMetadata().userinfo_endpoint === undefined) return undefined;
    return this.#ask(() => openid.fetchUserInfo(configuration, access, subject)).catch((error: unknown) => {
      throw isRefusal(error) ? error : unavailable(error);
    });
  }

  /**
   * Where people end their sign-in at the provider itself, which asks them first (OpenID Connect RP-Initiated Logout 1.0).
   * Undefined when it has no such place. Rejects with a 503.
   */
  async endUrl(): Promise<URL | undefined> {
    const { openid, configuration } = await this.#load();
    const hasPlace = configuration.serverMetadata().end_session_endpoint !== undefined;
    return hasPlace ? openid.buildEndSessionUrl(configuration) : undefined;
  }

  /** Loaded when somebody signs in; read again after a failure. */
  #load(): Promise<Library> {
    this.#library ??= this.#ask(() => this.#discover()).catch((error: unknown) => {
      this.#library = undefined;
      throw unavailable(error);
    });
    return this.#library;
  }

  /** Rejects with a 503 while the provider hangs. */
  async #ask<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await this.#guard.ask(question);
    } catch (error) {
      throw error instanceof HangingError ? unavailable(error) : error;
    }
  }

  async #discover(): Promise<Library> {
    const { issuer, clientId, clientSecret } = this.#settings;
    const openid = await import('openid-client');
    const authentication = clientSecret === undefined ? openid.None() : openid.ClientSecretPost(clientSecret);
    // An ID token would be as good as the connection that it came on otherwise, whoever signed it.
    const execute = [openid.enableNonRepudiationChecks];
    // The configuration allows plain HTTP for this machine alone.
    if (issuer.protocol === 'http:') execute.push(openid.allowInsecureRequests);
    const options = { timeout: TIMEOUT_SECONDS, execute };
    return { openid, configuration: await openid.discovery(issuer, clientId, undefined, authentication, options) };
  }
}

/** Whether the provider said that the token is no good, and not that it has trouble itself. */
function isRefusal(error: unknown): boolean {
  const { status, cause } = error as { status?: number; cause?: unknown };
  if (status !== undefined) return status === 401 || status === 403;
  return cause !== null && typeof cause === 'object' && isRefusal(cause);
}
