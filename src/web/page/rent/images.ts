import type { InstanceRecord } from '../../../wire/records.ts';

interface Choice {
  name: string;
  /** Empty: the default image, or that of the template. */
  image: string;
}

const COMMON: readonly Choice[] = [
  { name: 'Default', image: '' },
  { name: 'PyTorch', image: 'pytorch/pytorch:2.7.0-cuda12.6-cudnn9-runtime' },
  { name: 'vLLM', image: 'vllm/vllm-openai:v0.27.1' },
  { name: 'CUDA', image: 'nvidia/cuda:12.4.1-devel-ubuntu22.04' },
];

/** Images of the project that the form offers. */
const MOST_OWN = 3;

/** The last part of an image's path: what people call it. */
function shortName(image: string): string {
  const [path = image] = image.split('@', 1);
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Images to choose from: those that people start from, then the project's own, the one that was used last first. */
export function chooserOf(instances: readonly Pick<InstanceRecord, 'template_image'>[]): Choice[] {
  const own = new Set(instances.toReversed().map(({ template_image: image }) => image));
  for (const { image } of COMMON) own.delete(image);
  return [...COMMON, ...[...own].slice(0, MOST_OWN).map((image) => ({ name: shortName(image), image }))];
}
