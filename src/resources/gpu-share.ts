/** Parts and whole of a share such as 1/7; a whole GPU where it is absent or is no share. */
function parse(share: string | undefined): { parts: bigint; of: bigint } {
  const match = /^([1-9]\d{0,5})(?:\/([1-9]\d{0,5}))?$/.exec(share ?? '1');
  return { parts: BigInt(match?.[1] ?? '1'), of: BigInt(match?.[2] ?? '1') };
}

/** The part of an amount that falls to a share of a GPU, rounded half up. The amount is not negative. */
export function partOf(amount: bigint, share: string | undefined): bigint {
  const { parts, of } = parse(share);
  return (amount * parts + of / 2n) / of;
}
