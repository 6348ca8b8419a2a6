import { parse, parseAllDocuments } from 'yaml';
import { fullImageName } from '../../src/resources/tenants/ceilings.ts';

/** Variables of Berth that name an image, such as that of instances that name none. */
const VARIABLE = /^BERTH_\w+_IMAGE$/;

type Fields = Record<string, unknown>;

function imagesOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { image, name, value: text } = value as Fields;
  const own = typeof image === 'string' ? [image] : [];
  const named = typeof text === 'string' && VARIABLE.test(String(name)) ? [text] : [];
  return [...own, ...named, ...Object.values(value).flatMap(imagesOf)];
}

function sorted(names: readonly string[]): string[] {
  return [...new Set(names)].toSorted();
}

/** The images that objects of a YAML stream run, or have Berth run. */
export function imagesIn(stream: string): string[] {
  return sorted(parseAllDocuments(stream).flatMap((document) => imagesOf(document.toJS())));
}

/** The images that Chart.yaml lists for tools that copy them to another registry. */
export function listedImages(chart: string): string[] {
  const { annotations } = parse(chart) as { annotations: Record<string, string> };
  const list = parse(annotations['artifacthub.io/images'] ?? '') as { image: string }[];
  return sorted(list.map(({ image }) => image));
}

function placeOf(image: string, registry: string | undefined): string {
  const full = fullImageName(image);
  return registry === undefined ? full : `${registry}${full.slice(full.indexOf('/'))}`;
}

/** The whole names of images: in their own registries, or in one that has them all under their own paths. */
export function placesOf(images: readonly string[], registry?: string): string[] {
  return sorted(images.map((image) => placeOf(image, registry)));
}
