package org.omg.CORBA.portable;

/** In place of the class of this name that JacORB's API has beside the standard ones, and its IDL compiler's stubs name. */
public abstract class ServantObjectExt extends ServantObject {
    public abstract void normalCompletion();

    public abstract void exceptionalCompletion(Throwable why);
}
