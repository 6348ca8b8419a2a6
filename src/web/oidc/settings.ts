/** How the dashboard signs people in at an OpenID provider. */
export interface OidcSettings {
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

/** How the claims of a person become a user of Kubernetes. As the API server's flags --oidc-* do. */
export interface ClaimSettings {
  username: string;
  usernamePrefix: string;
  /** Absent: no groups but system:authenticated. */
  groups: string | undefined;
  groupsPrefix: string;
}
