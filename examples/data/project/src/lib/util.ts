export const double = (n: number) => 2 * n;
