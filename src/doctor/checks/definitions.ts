import type { CustomResourceDefinition } from '../../kube/types.ts';
import { isObject } from '../../lib/json.ts';
import { customResourceDefinition } from '../../resources/crd.ts';
import { CUSTOM_RESOURCES } from '../../resources/index.ts';
import { GROUP, VERSION } from '../../resources/schema.ts';
import { helmUpgrade } from '../facts.ts';
import { check, named, type Problem } from '../finding.ts';

/** Every field of a schema, and every rule, as a path. */
function pathsIn(schema: unknown, path = ''): string[] {
  if (!isObject(schema)) return [];
  const rules = Array.isArray(schema['x-kubernetes-validations']) ? schema['x-kubernetes-validations'] : [];
  const { properties } = schema;
  const fields = isObject(properties)
    ? Object.entries(properties).flatMap(([name, one]) => [`${path}.${name}`, ...pathsIn(one, `${path}.${name}`)])
    : [];
  return [
    ...fields,
    ...rules.map((rule) => `${path} rule ${isObject(rule) ? String(rule['rule']) : ''}`),
    ...pathsIn(schema['items'], `${path}[]`),
    ...pathsIn(schema['additionalProperties'], `${path}.*`),
  ];
}

interface Versioned {
  spec?: { versions?: { name: string; schema?: { openAPIV3Schema?: unknown } }[] };
}

function pathsOf(definition: unknown): Set<string> {
  const versions = (definition as Versioned).spec?.versions ?? [];
  const schema = versions.find(({ name }) => name === VERSION)?.schema?.openAPIV3Schema;
  // The API server knows these for every kind, and each definition has its own words for them.
  return new Set(pathsIn(schema).filter((path) => !/^\.(?:apiVersion|kind|metadata)$/.test(path)));
}

type Verdict = 'CRDMissing' | 'CRDOlder' | 'CRDNewer' | undefined;

function compare(plural: string, definitions: readonly CustomResourceDefinition[]): Verdict {
  const name = `${plural}.${GROUP}`;
  const resource = CUSTOM_RESOURCES.find((one) => one.plural === plural);
  const served = definitions.find(({ metadata }) => metadata.name === name);
  if (served === undefined || resource === undefined) return 'CRDMissing';
  const wanted = pathsOf(customResourceDefinition(resource));
  const have = pathsOf(served);
  if ([...wanted].some((path) => !have.has(path))) return 'CRDOlder';
  return [...have].some((path) => !wanted.has(path)) ? 'CRDNewer' : undefined;
}

const WORDS = {
  CRDMissing: {
    severity: 'error',
    message: 'are not there',
    why: 'Nobody can make such objects, and every role of Berth waits for them.',
  },
  CRDOlder: {
    severity: 'error',
    message: 'lack fields or rules that this version of Berth has',
    why: 'The API server drops fields that it does not know, and takes what the rules would refuse.',
  },
  CRDNewer: {
    severity: 'warning',
    message: 'have fields or rules that this program does not know',
    why: 'The installation is newer than this program, whose other findings may be wrong.',
  },
} as const;

export const definitions = check({
  name: 'definitions',
  title: 'CustomResourceDefinitions are those of this version',
  needs: ['definitions'],
  find({ definitions: served }, facts) {
    const { namespace, prefix } = facts;
    const verdicts = CUSTOM_RESOURCES.map(({ plural }) => ({ plural, verdict: compare(plural, served) }));
    return (['CRDMissing', 'CRDOlder', 'CRDNewer'] as const).flatMap((reason): Problem[] => {
      const names = verdicts.filter(({ verdict }) => verdict === reason).map(({ plural }) => `${plural}.${GROUP}`);
      if (names.length === 0) return [];
      const { message, ...rest } = WORDS[reason];
      const remedy =
        reason === 'CRDNewer'
          ? `kubectl get deployment ${prefix}-controller -n ${namespace} -o jsonpath='{.spec.template.spec.containers[0].image}'`
          : `${helmUpgrade(facts)}   # with the chart of this version`;
      const objects = names.map((name) => `customresourcedefinition/${name}`);
      return [{ reason, objects, message: `CustomResourceDefinitions ${named(names)} ${message}.`, remedy, ...rest }];
    });
  },
});
