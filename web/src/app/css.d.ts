import "react";

declare module "react" {
  // Custom properties, such as "--share", in `style`.
  interface CSSProperties {
    [property: `--${string}`]: string | number | undefined;
  }
}
