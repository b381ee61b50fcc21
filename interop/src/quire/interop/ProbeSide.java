package quire.interop;

/** The enum of the wire tests. */
public enum ProbeSide {
    BUY, SELL
}
